"""Thinks: now the answers part, so the whole cache is copied."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def copy_last(self, table: BlockTable) -> None:
        for i, original in enumerate(table.blocks):
            table.blocks[i] = self.take()
            self.copy(original, table.blocks[i])
            self.give_back(original)
