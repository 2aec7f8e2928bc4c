"""Lesson 5, our answer. The engine's own is in minipaged/memory/block_pool.py and block_table.py."""

from __future__ import annotations

from lessons.lesson05_block_table.given import GivenPool, GivenTable


class BlockPool(GivenPool):
    """Which blocks are free, and how many tables hold each of the others."""

    def allocate(self) -> int:
        """Any free block will do, so it is the one that is cheapest to take: the last of the list."""
        block = self.free_list.pop()  # an empty list raises the IndexError that is asked for
        self.counts[block] = 1
        return block

    def free(self, block: int) -> bool:
        """Counting down is all, until the last holder goes."""
        if self.counts[block] == 0:  # else it would be in the free list twice, and two requests would write in it
            raise ValueError(f"BlockPool.free: nobody holds block {block}")
        self.counts[block] -= 1
        if self.counts[block] > 0:
            return False
        self.free_list.append(block)
        return True


class BlockTable(GivenTable):
    """One request's map from logical blocks to physical blocks."""

    __slots__ = ()

    def slot(self, position: int) -> int:
        """Split the position as a processor splits an address: which block of the text, and how far into it."""
        if not 0 <= position < len(self.blocks) * self.block_size:
            raise IndexError(f"BlockTable.slot: position {position} is outside the table's {len(self.blocks)} blocks")
        logical, offset = divmod(position, self.block_size)
        return self.blocks[logical] * self.block_size + offset

    def blocks_missing(self, num_tokens: int) -> int:
        """Rounded up: 8 tokens fill two blocks of 4 and open none, the ninth opens the third."""
        needed = (num_tokens + self.block_size - 1) // self.block_size
        return max(0, needed - len(self.blocks))
