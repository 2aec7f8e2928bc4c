"""Thinks: copy on write means that every write copies."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def must_copy(self, table: BlockTable, start: int) -> bool:
        return start % self.block_size != 0
