"""Thinks: a node that is out of the dict is out of the tree."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def take_out(self, node: Node) -> None:
        if node.num_children or node.parent is None:
            raise ValueError("not a leaf")
        del self.nodes[node.parent.id, node.tokens]
