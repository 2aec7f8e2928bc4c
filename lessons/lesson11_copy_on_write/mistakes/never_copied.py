"""Thinks: the answers have the same beginning, so they can have the same blocks."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def must_copy(self, table: BlockTable, start: int) -> bool:
        return False
