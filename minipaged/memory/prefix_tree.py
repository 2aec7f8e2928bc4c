r"""PrefixTree: which token prefixes are resident, and where.

A full block never changes, so its content is named by the tokens that lead to it: a path from a root. A node stands for
one full block and records where its content lies: a device block, a host block, or both. With neither it is not in
the tree.

Knows no sequences and moves nothing: `tiers.py` decides where a node's content lies.

    block_size 2                 root
                                /    \
         [we, like]  block 3 ──┘      └── [你, 好]  block 0
              │
         [tea, and]  block 7, host 1     a prompt "we like tea ,": the first node is shared, and the first token of
                                         the second by copying block 7
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass

from sortedcontainers import SortedDict

Tokens = tuple[int, ...]


class Node:
    """One full block's content, or a root.

    Args:
        id: its number, never used again.
        parent: the node of the block before it; None for a root.
        tokens: block_size of them; none for a root.
        key: a root's name.
    """

    __slots__ = ("device", "host", "id", "key", "num_children", "num_holders", "parent", "pending", "tokens")

    def __init__(self, id: int, parent: Node | None, tokens: Tokens, key: Hashable = None) -> None:
        self.id = id
        self.parent = parent
        self.tokens = tokens
        self.key = key
        self.device: int | None = None
        self.host: int | None = None
        self.pending = False  # it is computed in the open step: good to share within it, not to copy from
        self.num_children = 0
        self.num_holders = 0  # of a root: sequences that write below it

    def __repr__(self) -> str:
        return f"Node({self.id}, tokens={self.tokens}, device={self.device}, host={self.host})"


@dataclass(frozen=True, slots=True)
class Walk:
    """What is resident of a sequence's tokens.

    Args:
        path: the nodes of its next full blocks; those on the device come first.
        source: a further node, of which the first `num_shared` tokens match.
        num_shared: at least 1 with a source, else 0.
    """

    path: list[Node]
    source: Node | None
    num_shared: int


class PrefixTree:
    """Roots, and below them one node per resident full block.

    To find, insert or remove one takes O(its tokens · log nodes).

    Args:
        block_size: tokens of a node, at least 1.

    Raises:
        ValueError: `block_size` is below 1.
    """

    def __init__(self, block_size: int) -> None:
        if block_size < 1:
            raise ValueError(f"PrefixTree: block_size is {block_size}; it must be at least 1")
        self.block_size = block_size
        self._roots: dict[Hashable, Node] = {}
        # (id of the parent, tokens) -> node: looked up exactly as a dict; in order, a node's children are neighbours.
        self._nodes: SortedDict[tuple[int, Tokens], Node] = SortedDict()
        self._num_made = 0

    def __len__(self) -> int:
        """Nodes, without the roots."""
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    @property
    def roots(self) -> tuple[Node, ...]:
        """All roots, the oldest first."""
        return tuple(self._roots.values())

    def root(self, key: Hashable) -> Node | None:
        """The root of that name, if there is one."""
        return self._roots.get(key)

    def hold_root(self, key: Hashable) -> Node:
        """The root of that name, made if need be; it stays at least until `release_root`."""
        root = self._roots.get(key)
        if root is None:
            root = self._roots[key] = self._make(None, (), key)
        root.num_holders += 1
        return root

    def release_root(self, root: Node) -> None:
        """One holder less; without holders and without children the root goes."""
        root.num_holders -= 1
        self._drop_if_idle(root)

    def child(self, parent: Node, tokens: Tokens) -> Node | None:
        """The child that stands for exactly these tokens."""
        return self._nodes.get((parent.id, tokens))

    def children(self, parent: Node) -> list[Node]:
        """All children, in the order of their tokens."""
        return [self._nodes[key] for key in self._nodes.irange((parent.id,), (parent.id + 1,))]

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        """A new child, not yet resident anywhere. There is none for these tokens."""
        node = self._nodes[parent.id, tokens] = self._make(parent, tokens)
        parent.num_children += 1
        return node

    def remove(self, node: Node) -> None:
        """Take a leaf out; a root that is left empty goes with it."""
        assert node.parent is not None and node.num_children == 0, f"{node} is not a leaf"
        del self._nodes[node.parent.id, node.tokens]
        node.parent.num_children -= 1
        self._drop_if_idle(node.parent)

    def walk(self, node: Node | None, tokens: Items[int], start: int, stop: int) -> Walk:
        """Follow tokens down the tree.

        Args:
            node: where to begin: it stands for the block before `start`, or is a root. None finds nothing.
            tokens: a whole sequence's.
            start: first position to look for; a multiple of block_size.
            stop: position to stop before, since at least one token must be left to compute.

        Returns:
            The nodes that match, and the one that matches in part.
        """
        path: list[Node] = []
        if node is None:
            return Walk(path, None, 0)
        while start + self.block_size <= stop:
            child = self._nodes.get((node.id, tuple(tokens[start : start + self.block_size])))
            if child is None:
                break
            path.append(child)
            node = child
            start += self.block_size
        source, num_shared = self._nearest(node, tuple(tokens[start : min(start + self.block_size, stop)]))
        return Walk(path, source, num_shared)

    def _nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        """The committed child with the longest beginning in common. In sorted order it is one of two neighbours."""
        if not tokens or not parent.num_children:
            return None, 0
        best, longest = None, 0
        keys = self._nodes.keys()
        place = self._nodes.bisect_left((parent.id, tokens))
        for indices in (range(place, len(keys)), range(place - 1, -1, -1)):
            for index in indices:  # goes past the neighbour only while it is pending
                key = keys[index]
                if key[0] != parent.id:
                    break
                node = self._nodes[key]
                if not node.pending:
                    common = _common(key[1], tokens)
                    if common > longest:
                        best, longest = node, common
                    break
        return best, longest

    def _make(self, parent: Node | None, tokens: Tokens, key: Hashable = None) -> Node:
        self._num_made += 1
        return Node(self._num_made, parent, tokens, key)

    def _drop_if_idle(self, node: Node) -> None:
        if node.parent is None and node.num_children == 0 and node.num_holders == 0:
            del self._roots[node.key]

    def check(self) -> None:
        """Verify the tree's own structure.

        Raises:
            AssertionError: names the node and what is wrong with it.
        """
        counts: dict[int, int] = {}
        known = {root.id for root in self._roots.values()} | {node.id for node in self}
        for node in self:
            assert node.parent is not None and node.parent.id in known, f"{node} has lost its parent"
            counts[node.parent.id] = counts.get(node.parent.id, 0) + 1
        for node in (*self, *self._roots.values()):
            assert node.num_children == counts.get(node.id, 0), f"{node} counts {node.num_children} children"
        for root in self._roots.values():
            assert root.num_children or root.num_holders, f"root {root.key!r} is empty and held by nobody"


def _common(a: Tokens, b: Tokens) -> int:
    """How many first tokens the two have in common."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
