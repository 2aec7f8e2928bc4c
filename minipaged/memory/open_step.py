"""OpenStep: what the step between plan and commit will have computed, and what becomes of it.

A block that the plan fills becomes a node at once, *pending*: later sequences of the same step share it, since every
layer writes all K and V before it attends. When the step ends the nodes are committed; when it fails they vanish.

It knows holdings, nodes and blocks; not why a sequence computes.
"""

from __future__ import annotations

from minipaged.memory.holding import Holding
from minipaged.memory.prefix_tree import Node, PrefixTree
from minipaged.memory.tiers import Tiers


class OpenStep:
    """One at a time; empty between steps.

    Args:
        tree: where the nodes go.
        tiers: where their content lies.
    """

    def __init__(self, tree: PrefixTree, tiers: Tiers) -> None:
        self._tree = tree
        self._block_size = tree.block_size
        self._tiers = tiers
        self._holdings: list[Holding] = []
        self._pending: list[Node] = []  # parents first

    def compute(self, holding: Holding, end: int) -> None:
        """The step computes the sequence's tokens up to `end`; its table reaches that far."""
        holding.end = end
        if not holding.in_step:
            holding.in_step = True
            self._holdings.append(holding)
        while (len(holding.nodes) + 1) * self._block_size <= end:  # seldom: the sequence fills a block
            parent, tokens = holding.last_node, holding.next_tokens()
            if self._tree.child(parent, tokens) is not None:
                # Its own block is not the node's, and a held node's ancestors must be held: nothing goes below it yet.
                holding.stalled = True
                break
            node = self._tree.insert(parent, tokens)
            node.pending = True
            self._tiers.place(node, holding.table.blocks[len(holding.nodes)])
            holding.nodes.append(node)
            self._pending.append(node)

    def commit(self) -> None:
        """It went well."""
        for node in self._pending:
            node.pending = False
        self._pending.clear()
        for holding in self._holdings:
            holding.in_step = False
            if holding.stalled:
                self._settle(holding)
        self._holdings.clear()

    def abort(self) -> None:
        """It failed: what it should have computed is not there."""
        for node in reversed(self._pending):
            self._tiers.forget(node)
        self._pending.clear()
        for holding in self._holdings:
            holding.in_step = holding.stalled = False
            while holding.nodes and holding.nodes[-1].pending:
                holding.nodes.pop()
        self._holdings.clear()

    def _settle(self, holding: Holding) -> None:
        """The same content was computed twice. One block stays, for this sequence and all that follow."""
        holding.stalled = False
        while holding.has_full_block_without_node:
            parent, tokens, i = holding.last_node, holding.next_tokens(), len(holding.nodes)
            own = holding.table.blocks[i]
            node = self._tree.child(parent, tokens) or self._tree.insert(parent, tokens)
            if node.device is None:  # new, or on the host only: it adopts the block
                self._tiers.place(node, own)
            else:
                self._tiers.pool.hold(node.device)
                holding.table.blocks[i] = node.device
                self._tiers.release(own)
            holding.nodes.append(node)
