"""What lesson 5's exercise is given: a pool and a table with everything but the methods that are the point.

Both are the engine's own classes, so that what is written below them can take their place in the engine.
"""

from __future__ import annotations

from minipaged.memory import block_pool, block_table


class GivenPool(block_pool.BlockPool):
    """A pool's books, without taking and giving back.

    Attributes:
        free_list: the free blocks; take from it and put back into it as you like.
        counts: for each block, how many tables hold it. 0: nobody.
    """

    @property
    def free_list(self) -> list[int]:
        return self._free

    @property
    def counts(self) -> list[int]:
        return self._counts

    def free(self, block: int) -> bool:
        """See the exercise."""
        raise NotImplementedError

    def release(self, block: int, *, cached: bool) -> bool:
        """As the engine asks: a block whose content may be wanted again is kept when its last holder goes (lesson 10
        says what for); in all other cases `free` is asked."""
        if cached and self.counts[block] == 1:
            return super().release(block, cached=True)
        return self.free(block)


class GivenTable(block_table.BlockTable):
    """A table, without its arithmetic.

    Attributes:
        block_size: token slots in a block.
        blocks: the physical block of each logical block, in order; others append to it.
    """

    __slots__ = ()
