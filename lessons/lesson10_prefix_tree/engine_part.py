"""The engine's own tree under the exercise's names, so that the same check can be put to it."""

from __future__ import annotations

from collections.abc import Sequence as Items

from minipaged.memory import prefix_tree
from minipaged.memory.prefix_tree import Node, Tokens


class PrefixTree(prefix_tree.PrefixTree):
    """The engine asks `child` before it inserts, and keeps a walk in one piece."""

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        return self.child(parent, tokens) or super().insert(parent, tokens)

    def take_out(self, node: Node) -> None:
        if node.parent is None or node.num_children:
            raise ValueError(f"PrefixTree.take_out: {node} is no leaf; only a leaf can go")
        self.remove(node)

    def follow(self, node: Node, tokens: Items[int], start: int, stop: int) -> list[Node]:
        return self.walk(node, tokens, start, stop).path

    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        return self._nearest(parent, tokens)
