"""Thinks: the token is `offset` behind the block, so its slot is the block's number plus the offset."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockTable(solution.BlockTable):
    __slots__ = ()

    def slot(self, position: int) -> int:
        if not 0 <= position < self.num_slots:
            raise IndexError(position)
        return self.blocks[position // self.block_size] + position % self.block_size
