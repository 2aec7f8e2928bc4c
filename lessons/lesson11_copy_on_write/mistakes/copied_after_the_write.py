"""Thinks: first the token is written, then the block is worth a copy."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    late: tuple[tuple[int, int], ...] = ()

    def copy_last(self, table: BlockTable) -> None:
        original = table.blocks[-1]
        table.blocks[-1] = self.take()
        self.late += ((original, table.blocks[-1]),)
        self.give_back(original)

    def end_step(self) -> None:
        super().end_step()
        for source, destination in self.late:
            self.copy(source, destination)
        self.late = ()
