"""Thinks: a table that shares a block is a shared table."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def must_copy(self, table: BlockTable, start: int) -> bool:
        return start % self.block_size != 0 and any(self.pool.count(block) > 1 for block in table.blocks)
