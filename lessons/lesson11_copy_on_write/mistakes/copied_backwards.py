"""Thinks: the others get the copy."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def copy_last(self, table: BlockTable) -> None:
        original = table.blocks[-1]
        table.blocks[-1] = self.take()
        self.copy(table.blocks[-1], original)
        self.give_back(original)
