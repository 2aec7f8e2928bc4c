"""What lesson 10's exercise is given: the engine's tree with everything but the methods that are the point.

Roots, making a node, listing children and the bookkeeping around a walk are here, so that what is written below them
can take its place in the engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from collections.abc import Sequence as Items

from minipaged.memory import prefix_tree
from minipaged.memory.prefix_tree import Node, Tokens, Walk

__all__ = ["GivenTree", "Node", "Tokens"]


class GivenTree(prefix_tree.PrefixTree):
    """A tree that cannot find, add or match yet.

    Attributes:
        block_size: tokens of a node.
        nodes: all nodes but the roots. Under which key a node is filed is yours to decide; use the key to find it.
    """

    def __init__(self, block_size: int) -> None:
        super().__init__(block_size)
        self.nodes: dict[Hashable, Node] = {}

    def make(self, parent: Node, tokens: Tokens) -> Node:
        """A new node with an id of its own. It knows its parent, and nobody knows it yet."""
        return self._make(parent, tokens)

    def children(self, parent: Node) -> list[Node]:
        """All children of a node, in the order of their tokens."""
        return sorted((node for node in self.nodes.values() if node.parent is parent), key=lambda node: node.tokens)

    def child(self, parent: Node, tokens: Tokens) -> Node | None:
        """See the exercise."""
        raise NotImplementedError

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        """See the exercise."""
        raise NotImplementedError

    def take_out(self, node: Node) -> None:
        """See the exercise."""
        raise NotImplementedError

    def follow(self, node: Node, tokens: Items[int], start: int, stop: int) -> list[Node]:
        """See the exercise."""
        raise NotImplementedError

    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        """See the exercise."""
        raise NotImplementedError

    # As the engine asks ----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self.nodes.values()))

    def remove(self, node: Node) -> None:
        """Takes a leaf out; a root that is left empty, and that nobody holds, goes with it."""
        parent = node.parent
        self.take_out(node)
        if parent is not None:
            self._drop_if_idle(parent)

    def walk(self, node: Node | None, tokens: Items[int], start: int, stop: int) -> Walk:
        """Full blocks as far as they match, and then the child that has most of the next one's beginning."""
        if node is None:  # nothing was ever computed below this root
            return Walk([], None, 0)
        path = list(self.follow(node, tokens, start, stop))
        last = path[-1] if path else node
        start += len(path) * self.block_size
        source, num_shared = self.nearest(last, tuple(tokens[start : min(start + self.block_size, stop)]))
        return Walk(path, source, num_shared)
