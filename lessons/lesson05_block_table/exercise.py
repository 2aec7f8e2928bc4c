"""Lesson 5: a pool of blocks, and one request's table. Three tasks; `python -m lessons check 5` says how you stand.

What is given: `self.free_list` (free block numbers) and `self.counts` (holders of each block) in the pool,
`self.block_size` and `self.blocks` (physical block of each logical one) in the table.
"""

from __future__ import annotations

from lessons.lesson05_block_table.given import GivenPool, GivenTable


class BlockPool(GivenPool):
    """Which blocks are free, and how many tables hold each of the others."""

    def allocate(self) -> int:
        """Task 1. Take a free block: it leaves the free list, and one table holds it now.

        Returns:
            The block's number. Which of the free ones is yours to choose.

        Raises:
            IndexError: no block is free.

        A pool of 3, nothing taken: allocate() -> 0, say. Now free_list == [2, 1] and counts == [1, 0, 0].
        """
        raise NotImplementedError("lesson 5, task 1: take a free block")

    def free(self, block: int) -> bool:
        """Task 2. One table less holds `block`. A block that nobody holds any more goes back to the free list.

        Several tables can hold one block: equal prompts share it. Somebody else counts those up.

        Returns:
            True when that was its last holder.

        Raises:
            ValueError: nobody holds the block. Nothing has changed then.

        counts == [2, 1, 0]: free(0) -> False, counts == [1, 1, 0]; free(1) -> True, counts == [1, 0, 0], and block 1
        is in free_list.
        """
        raise NotImplementedError("lesson 5, task 2: give a block back")


class BlockTable(GivenTable):
    """One request's map from logical blocks (0, 1, 2 … of its text) to physical blocks (where they lie)."""

    __slots__ = ()

    def slot(self, position: int) -> int:
        """Task 3. The slot of the token at `position` of the text, counted from 0 over the whole pool.

        Physical block b has the slots b * block_size … (b + 1) * block_size - 1.

        Raises:
            IndexError: the table does not reach that far, or `position` is below 0.

        block_size 4, blocks [7, 2, 5]: position 0 is in block 7, slot 28; position 9 is in block 5, slot 21.
        """
        raise NotImplementedError("lesson 5, task 3: find a token's slot")

    def blocks_missing(self, num_tokens: int) -> int:
        """Task 3, too. How many more blocks it takes until the table has room for `num_tokens` tokens; never below 0.

        block_size 4, blocks [7, 2]: for 8 tokens 0, for 9 tokens 1, for 13 tokens 2, for 1 token 0.
        """
        raise NotImplementedError("lesson 5, task 3: know when a block is full")
