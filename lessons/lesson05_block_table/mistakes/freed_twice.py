"""Thinks: nobody would give back what they do not hold."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockPool(solution.BlockPool):
    def free(self, block: int) -> bool:
        self.counts[block] = max(0, self.counts[block] - 1)
        if self.counts[block] == 0:
            self.free_list.append(block)
        return self.counts[block] == 0
