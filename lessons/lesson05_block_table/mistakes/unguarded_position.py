"""Thinks: a list that is asked for too much raises an IndexError by itself."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockTable(solution.BlockTable):
    __slots__ = ()

    def slot(self, position: int) -> int:
        logical, offset = divmod(position, self.block_size)
        return self.blocks[logical] * self.block_size + offset
