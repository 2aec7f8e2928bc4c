"""Thinks: whatever has no children is a leaf."""

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def take_out(self, node):
        if node.num_children:
            raise ValueError(f"{node} is not a leaf")
        if node.parent is not None:
            del self.nodes[node.parent.id, node.tokens]
            node.parent.num_children -= 1
