"""Thinks: two answers need two caches."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def share(self, parent: BlockTable, child: BlockTable) -> None:
        for block in parent.blocks:
            child.blocks.append(self.take())
            self.copy(block, child.blocks[-1])
