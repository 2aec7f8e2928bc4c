"""Thinks: a node is a node, and nobody holds this one."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def take_out(self, node: Node) -> None:
        if node.parent is None:
            raise ValueError("a root")
        del self.nodes[node.parent.id, node.tokens]
        node.parent.num_children -= 1
