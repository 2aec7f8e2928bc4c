"""Thinks: one child that begins alike is as good as another."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node, Tokens
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        for child in self.children(parent):
            common = 0
            while common < len(tokens) and child.tokens[common] == tokens[common]:
                common += 1
            if common and not child.pending:
                return child, common
        return None, 0
