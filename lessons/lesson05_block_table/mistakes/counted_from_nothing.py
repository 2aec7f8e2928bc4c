"""Thinks: the question is how many blocks so many tokens take."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockTable(solution.BlockTable):
    __slots__ = ()

    def blocks_missing(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)
