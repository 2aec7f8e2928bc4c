"""Thinks: a shared last block is copied when its holder goes on."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def must_copy(self, table: BlockTable, start: int) -> bool:
        return self.pool.count(table.blocks[-1]) > 1
