"""Thinks: the child has the parent's blocks, so it has the parent's list."""

from __future__ import annotations

from lessons.lesson11_copy_on_write import solution
from lessons.lesson11_copy_on_write.given import BlockTable
from lessons.lesson11_copy_on_write.solution import *  # noqa: F403


class KVManager(solution.KVManager):
    def share(self, parent: BlockTable, child: BlockTable) -> None:
        child.blocks = parent.blocks
        for block in parent.blocks:
            self.pool.hold(block)
