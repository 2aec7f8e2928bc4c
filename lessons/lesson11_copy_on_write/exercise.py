"""Lesson 11: what memory does when answers part. Three tasks; `python -m lessons check 11` says how you stand.

What is given: `self.pool.hold(block)` (one more holder), `self.pool.count(block)` (how many), `self.take()` (a block
for one table alone), `self.copy(source, destination)` (enters a copy into the step's log), `self.give_back(block)` (one
holder less), `self.block_size`. A table has its blocks in `table.blocks`, a list.
"""

from __future__ import annotations

from lessons.lesson11_copy_on_write.given import BlockTable, GivenManager


class KVManager(GivenManager):
    """Gives out token slots, and lets sequences share them."""

    def share(self, parent: BlockTable, child: BlockTable) -> None:
        """Task 1. `child`, an empty table, gets the parent's blocks. No block is taken, none is copied.

        The two tables go their own ways afterwards: a block that one of them appends is not the other's.

        parent.blocks == [0, 1, 2], each with count 1. After share: child.blocks == [0, 1, 2], each with count 2.
        """
        raise NotImplementedError("lesson 11, task 1: fork a table")

    def must_copy(self, table: BlockTable, start: int) -> bool:
        """Task 2. The sequence is about to write its tokens from position `start` on. Is there a block to copy first?

        `start` tokens are in the table's blocks, so these are full but for the last, perhaps. Tokens that do not fit
        into it get new blocks, which nobody shares.

        block_size 4, blocks [0, 1], both with count 2: must_copy(table, 6) -> True, for positions 6 and 7 are in
        block 1, which somebody else holds, too. must_copy(table, 8) -> False: position 8 is in neither.
        """
        raise NotImplementedError("lesson 11, task 2: decide whether to copy")

    def copy_last(self, table: BlockTable) -> None:
        """Task 3. The table's last block is shared, and about to be written on: the table gets a copy of its own.

        blocks [0, 1], both with count 2, block 2 is free: after copy_last(table) the log has CopyBlock(1, 2), the
        table's blocks are [0, 2], and the counts of 0, 1, 2 are 2, 1, 1.
        """
        raise NotImplementedError("lesson 11, task 3: copy before write")
