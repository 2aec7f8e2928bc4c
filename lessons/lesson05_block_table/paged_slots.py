"""PagedSlots: the same interface on a pool of blocks and a table per request.

The pool and the tables are handed in, the engine's or a learner's: here is only what the two together can do.
"""

from __future__ import annotations

from collections.abc import Callable

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.block_table import BlockTable


class PagedSlots:
    """Blocks of token slots, given out one at a time.

    Args:
        num_slots: token slots in the memory, a multiple of `block_size`.
        block_size: token slots in a block.
        pool: makes a pool of so many blocks.
        table: makes an empty table of that block size.
    """

    def __init__(
        self,
        num_slots: int,
        block_size: int,
        pool: Callable[[int], BlockPool] = BlockPool,
        table: Callable[[int], BlockTable] = BlockTable,
    ) -> None:
        if num_slots < 1 or num_slots % block_size:
            raise ValueError(f"PagedSlots: {num_slots} slots are no whole number of blocks of {block_size}")
        self.num_slots = num_slots
        self.block_size = block_size
        self.pool = pool(num_slots // block_size)
        self._new_table = table
        self.tables: dict[str, BlockTable] = {}
        self.lengths: dict[str, int] = {}

    @property
    def live_slots(self) -> int:
        return sum(self.lengths.values())

    @property
    def free_slots(self) -> int:
        """Slots in free blocks; the empty end of a request's last block is not free, only that request can fill it."""
        return self.pool.num_free * self.block_size

    def empty_slots(self, name: str) -> int:
        """Slots of the request's last block that hold nothing yet."""
        return len(self.tables[name].blocks) * self.block_size - self.lengths[name]

    def admit(self, name: str, num_tokens: int) -> bool:
        """Blocks for `num_tokens`, wherever they lie; False when too few are free."""
        if name in self.tables:
            raise ValueError(f"PagedSlots.admit: {name} has a table already")
        table = self._new_table(self.block_size)
        if not self._extend(table, num_tokens):
            return False
        self.tables[name], self.lengths[name] = table, num_tokens
        return True

    def append(self, name: str) -> bool:
        """One more token: mostly into the last block, else into a new one."""
        if not self._extend(self.tables[name], self.lengths[name] + 1):
            return False
        self.lengths[name] += 1
        return True

    def release(self, name: str) -> None:
        """All its blocks are free."""
        for block in self.tables.pop(name).blocks:
            self.pool.release(block, cached=False)
        del self.lengths[name]

    def slot(self, name: str, position: int) -> int:
        """Where the token at `position` lies: its table says."""
        if position >= self.lengths[name]:
            raise IndexError(f"PagedSlots.slot: {name} has positions 0 to {self.lengths[name] - 1}, not {position}")
        return self.tables[name].slot(position)

    def _extend(self, table: BlockTable, num_tokens: int) -> bool:
        missing = table.blocks_missing(num_tokens)
        if missing > self.pool.num_free:
            return False
        table.blocks.extend(self.pool.allocate() for _ in range(missing))
        return True
