"""KVManager: the one door by which the scheduler reaches memory.

It gives each admitted sequence a block table over one pool, grows it, and takes it back. It decides nothing about who
may run (that is the scheduler) and moves nothing (that is the runner, by the operations logged here).

A refusal changes nothing: whatever is missing is counted before the first block is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.block_table import BlockTable
from minipaged.plan import MemoryOp, Poison
from minipaged.request import Sequence


@dataclass(frozen=True, slots=True)
class Admission:
    """What an admitted sequence got.

    Args:
        num_cached: tokens whose K and V are in its blocks already.
        num_new: tokens that it computes in this step, right behind them; their slots are in its table.
    """

    num_cached: int
    num_new: int


class KVManager:
    """Block tables over one device pool, without sharing: each block is held by one table.

    Args:
        pool: the device pool.
        block_size: token slots in a block, at least 1.
        poison_freed: log a `Poison` for every block that becomes free, so that a stale read shows as NaN.

    Raises:
        ValueError: an impossible block size; or, from its methods, a sequence that is not in the state they ask for.
    """

    def __init__(self, pool: BlockPool, block_size: int, *, poison_freed: bool = False) -> None:
        if block_size < 1:
            raise ValueError(f"KVManager: block_size is {block_size}; it must be at least 1")
        self.pool = pool
        self.block_size = block_size
        self._poison_freed = poison_freed
        self._tables: dict[int, BlockTable] = {}  # sequence id -> table
        self._operations: list[MemoryOp] = []  # decided since the last plan took them, in the order decided

    @property
    def total_slots(self) -> int:
        """Token slots in the pool."""
        return self.pool.num_blocks * self.block_size

    @property
    def max_sequence_slots(self) -> int:
        """Token slots that one sequence can hold at most: the whole pool, since blocks need not be neighbours."""
        return self.total_slots

    @property
    def held_slots(self) -> int:
        """Token slots in held blocks, filled or not."""
        return self.pool.num_held * self.block_size

    def table(self, sequence: Sequence) -> tuple[int, ...]:
        """A copy of the sequence's block table; empty when it holds nothing."""
        table = self._tables.get(sequence.id)
        return tuple(table.blocks) if table else ()

    def slot(self, sequence: Sequence, position: int) -> int:
        """The slot that holds the K and V of the sequence's token at `position`."""
        return self._require_table("slot", sequence).slot(position)

    def admit(self, sequence: Sequence, want: int, reserve: int = 0) -> Admission | None:
        """Give a waiting sequence a table with room for the tokens it computes in this step.

        Args:
            sequence: holds no table yet.
            want: tokens to compute in this step at most, at least 1.
            reserve: token slots that must stay free behind the admission.

        Returns:
            None when it does not fit; nothing has changed then.
        """
        if sequence.id in self._tables:
            raise ValueError(f"KVManager.admit: sequence {sequence.id} is admitted already; release it first")
        num_new = min(want, len(sequence.tokens))
        table = BlockTable(self.block_size)
        missing = table.blocks_missing(num_new)
        if missing + -(-reserve // self.block_size) > self.pool.num_free:
            return None
        self._extend(table, missing)
        self._tables[sequence.id] = table
        return Admission(num_cached=0, num_new=num_new)

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Make room for `n` more tokens behind the computed ones; False, and nothing changed, when there is none."""
        table = self._require_table("grow", sequence)
        missing = table.blocks_missing(sequence.num_computed + n)
        if missing > self.pool.num_free:
            return False
        self._extend(table, missing)
        return True

    def release(self, sequence: Sequence) -> None:
        """Take the sequence's table back; its blocks are free, last block first."""
        table = self._require_table("release", sequence)
        del self._tables[sequence.id]
        for block in reversed(table.blocks):
            if self.pool.release(block) and self._poison_freed:
                self._operations.append(Poison(block))

    def take_operations(self) -> list[MemoryOp]:
        """The operations decided since the last call, in order; they go into the plan and are executed with it."""
        operations, self._operations = self._operations, []
        return operations

    def abort_step(self, unexecuted: list[MemoryOp]) -> None:
        """A step failed after executing part of its operations: the rest goes in front of the next step's."""
        self._operations = unexecuted + self._operations

    def check(self) -> None:
        """Verify the books.

        Raises:
            AssertionError: names the block and what is wrong with it.
        """
        self.pool.check()
        holders = [0] * self.pool.num_blocks
        for table in self._tables.values():
            for block in table.blocks:
                holders[block] += 1
        for block, count in enumerate(holders):
            assert self.pool.count(block) == count, f"block {block}: count {self.pool.count(block)}, in {count} tables"

    def _extend(self, table: BlockTable, missing: int) -> None:
        table.blocks.extend(self.pool.allocate() for _ in range(missing))

    def _require_table(self, verb: str, sequence: Sequence) -> BlockTable:
        table = self._tables.get(sequence.id)
        if table is None:
            raise ValueError(f"KVManager.{verb}: sequence {sequence.id} holds no blocks; admit it first")
        return table
