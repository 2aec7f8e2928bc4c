"""Thinks: a block that begins as the prompt ends is a match."""

from __future__ import annotations

from collections.abc import Sequence as Items

from lessons.lesson10_prefix_tree import solution
from lessons.lesson10_prefix_tree.given import Node
from lessons.lesson10_prefix_tree.solution import *  # noqa: F403


class PrefixTree(solution.PrefixTree):
    def follow(self, node: Node, tokens: Items[int], start: int, stop: int) -> list[Node]:
        path = super().follow(node, tokens, start, stop)
        node = path[-1] if path else node
        start += len(path) * self.block_size
        rest = tuple(tokens[start : min(stop, start + self.block_size)])
        match = [child for child in self.children(node) if rest and child.tokens[: len(rest)] == rest]
        return path + match[:1]
