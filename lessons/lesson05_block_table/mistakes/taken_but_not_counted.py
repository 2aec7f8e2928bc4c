"""Thinks: a block that is not in the free list is taken, what else is there to write down?"""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockPool(solution.BlockPool):
    def allocate(self) -> int:
        return self.free_list.pop()
