"""Thinks: there must always be a block for the next token, so a full one opens another."""

from lessons.lesson05_block_table import solution
from lessons.lesson05_block_table.solution import *  # noqa: F403


class BlockTable(solution.BlockTable):
    __slots__ = ()

    def blocks_missing(self, num_tokens: int) -> int:
        needed = num_tokens // self.block_size + 1 if num_tokens else 0
        return max(0, needed - len(self.blocks))
