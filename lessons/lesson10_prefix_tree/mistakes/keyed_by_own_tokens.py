"""Thinks: a block's content is its tokens, so its tokens are its name."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node, Tokens
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def child(self, parent: Node, tokens: Tokens) -> Node | None:
        return self.nodes.get(tokens)

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        node = self.child(parent, tokens)
        if node is None:
            node = self.nodes[tokens] = self.make(parent, tokens)
            parent.num_children += 1
        return node

    def take_out(self, node: Node) -> None:
        if node.num_children or node.parent is None:
            raise ValueError("not a leaf")
        del self.nodes[node.tokens]
        node.parent.num_children -= 1
