"""Thinks: the node knows its parent, so the parent need not be told."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node, Tokens
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def insert(self, parent: Node, tokens: Tokens) -> Node:
        node = self.child(parent, tokens)
        if node is None:
            node = self.nodes[parent.id, tokens] = self.make(parent, tokens)
        return node
