"""Thinks: the third block of the text is the third block of the pool."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockTable(solution.BlockTable):
    __slots__ = ()

    def slot(self, position: int) -> int:
        if not 0 <= position < self.num_slots:
            raise IndexError(position)
        return position // self.block_size * self.block_size + position % self.block_size
