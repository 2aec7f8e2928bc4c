"""Lesson 10, our answer. The engine's own is in minipaged/memory/prefix_tree.py, with sorted keys."""

from __future__ import annotations

from collections.abc import Sequence as Items
from itertools import takewhile

from lessons.lesson10_prefix_tree.given import GivenTree, Node, Tokens


class PrefixTree(GivenTree):
    """Which beginnings are resident."""

    def child(self, parent: Node, tokens: Tokens) -> Node | None:
        """The key names the whole path: the parent's id stands for all that comes before."""
        return self.nodes.get((parent.id, tokens))

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        """The same content under the same path is one node, however often it is computed."""
        node = self.child(parent, tokens)
        if node is None:
            node = self.nodes[parent.id, tokens] = self.make(parent, tokens)
            parent.num_children += 1
        return node

    def take_out(self, node: Node) -> None:
        """Only the end of a path can go: what is below a block means nothing without it."""
        if node.parent is None:
            raise ValueError(f"PrefixTree.take_out: {node} is a root; only a leaf can go")
        if node.num_children:
            raise ValueError(f"PrefixTree.take_out: {node} has {node.num_children} children; only a leaf can go")
        del self.nodes[node.parent.id, node.tokens]
        node.parent.num_children -= 1

    def follow(self, node: Node, tokens: Items[int], start: int, stop: int) -> list[Node]:
        """Block by block, until one does not match or would reach beyond `stop`."""
        path: list[Node] = []
        while start + self.block_size <= stop:
            child = self.child(node, tuple(tokens[start : start + self.block_size]))
            if child is None:  # what follows a block that is not there cannot be there either
                break
            path.append(child)
            node = child
            start += self.block_size
        return path

    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        """All children are looked at. The engine keeps them sorted, so that two are enough."""
        best, longest = None, 0
        for child in self.children(parent):
            pairs = zip(child.tokens, tokens, strict=False)
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            if common > longest and not child.pending:
                best, longest = child, common
        return best, longest
