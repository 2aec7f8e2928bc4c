"""Holding: what one sequence holds: its block table, and the nodes that stand for its full blocks.

Plain data and its arithmetic. It takes no block, moves none, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minipaged.memory.block_table import BlockTable
from minipaged.memory.prefix_tree import Node, Tokens
from minipaged.request import Sequence


@dataclass(slots=True)
class Holding:
    """Between steps `nodes` covers exactly the full blocks of the table."""

    sequence: Sequence
    root: Node
    table: BlockTable
    nodes: list[Node] = field(default_factory=list)  # nodes[i] stands for table.blocks[i]
    end: int = 0  # tokens in the cache once the open step is done
    in_step: bool = False
    stalled: bool = False  # it fills a block whose node exists already; settled when the step ends

    @property
    def last_node(self) -> Node:
        """What its next node is to hang below."""
        return self.nodes[-1] if self.nodes else self.root

    @property
    def has_full_block_without_node(self) -> bool:
        return (len(self.nodes) + 1) * self.table.block_size <= self.end

    def next_tokens(self) -> Tokens:
        """The tokens of its first block without a node; that block is full."""
        first = len(self.nodes) * self.table.block_size
        return tuple(self.sequence.tokens[first : first + self.table.block_size])

    def check(self) -> None:
        """Verify the table against the nodes.

        Raises:
            AssertionError: names the sequence and what is wrong with it.
        """
        name = f"sequence {self.sequence.id}"
        size, blocks, tokens = self.table.block_size, self.table.blocks, self.sequence.tokens
        assert len(blocks) == -(-self.end // size), f"{name}: {len(blocks)} blocks for {self.end} tokens"
        if not self.stalled:
            assert len(self.nodes) == self.end // size, f"{name}: a full block without a node"
        parent = self.root
        for i, node in enumerate(self.nodes):
            assert node.parent is parent, f"{name}: node {i} is not below node {i - 1}"
            assert node.device == blocks[i], f"{name}: node {i} is not in block {blocks[i]}"
            assert list(node.tokens) == tokens[i * size : (i + 1) * size], f"{name}: {node} has other tokens"
            parent = node
