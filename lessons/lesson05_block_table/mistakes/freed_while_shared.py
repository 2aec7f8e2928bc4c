"""Thinks: who frees a block is done with it, so it is free."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockPool(solution.BlockPool):
    def free(self, block: int) -> bool:
        if self.counts[block] == 0:
            raise ValueError(f"nobody holds block {block}")
        self.counts[block] = 0
        self.free_list.append(block)
        return True
