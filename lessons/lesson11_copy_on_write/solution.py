"""Lesson 11, our answer. The engine's own is `fork` and `grow` in minipaged/memory/kv_manager.py."""

from __future__ import annotations

from lessons.lesson11_copy_on_write.given import BlockTable, GivenManager


class KVManager(GivenManager):
    """Gives out token slots, and lets sequences share them."""

    def share(self, parent: BlockTable, child: BlockTable) -> None:
        """The numbers are copied, the blocks are not; each has one holder more."""
        child.blocks.extend(parent.blocks)
        for block in parent.blocks:
            self.pool.hold(block)

    def must_copy(self, table: BlockTable, start: int) -> bool:
        """Only a last block with room in it is written on, and only company makes that a wrong."""
        return start % self.block_size != 0 and self.pool.count(table.blocks[-1]) > 1

    def copy_last(self, table: BlockTable) -> None:
        """The original stays with the others, who hold it once less."""
        original = table.blocks[-1]
        table.blocks[-1] = self.take()
        self.copy(original, table.blocks[-1])
        self.give_back(original)
