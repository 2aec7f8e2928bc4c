"""Thinks: what counts is how many tokens are the same."""

from __future__ import annotations

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node, Tokens
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        best, most = None, 0
        for child in self.children(parent):
            common = sum(a == b for a, b in zip(child.tokens, tokens, strict=False))
            if common > most and not child.pending:
                best, most = child, common
        return best, most
