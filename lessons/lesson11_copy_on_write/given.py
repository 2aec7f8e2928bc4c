"""What lesson 11's exercise is given: the engine's manager, without what happens when answers part.

`fork` and `grow` are told here as the engine tells them, and ask the exercise at the three places that are the point.
"""

from __future__ import annotations

from minipaged.memory import kv_manager
from minipaged.memory.block_table import BlockTable
from minipaged.memory.holding import Holding
from minipaged.request import Sequence

__all__ = ["BlockTable", "GivenManager"]


class GivenManager(kv_manager.KVManager):
    """A manager that can neither fork nor copy before it writes.

    Attributes:
        pool: the device pool: `pool.hold(block)` counts one more holder, `pool.count(block)` says how many there are.
        block_size: token slots in a block.
    """

    def take(self) -> int:
        """A block for one table alone: its count is 1. There is one; `grow` has made sure."""
        return self.tiers.take()

    def copy(self, source: int, destination: int) -> None:
        """Enter the copying of a block into the step's log; it is done before the step computes anything."""
        self.tiers.copy(source, destination)

    def give_back(self, block: int) -> None:
        """One table less holds the block."""
        self.tiers.release(block)

    def share(self, parent: BlockTable, child: BlockTable) -> None:
        """See the exercise."""
        raise NotImplementedError

    def must_copy(self, table: BlockTable, start: int) -> bool:
        """See the exercise."""
        raise NotImplementedError

    def copy_last(self, table: BlockTable) -> None:
        """See the exercise."""
        raise NotImplementedError

    # As the engine asks ----------------------------------------------------------------------------------------------

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """A second sequence that stands where the first one stands."""
        of_parent = self._require("fork", parent)
        if child.id in self._holdings:
            raise ValueError(f"KVManager.fork: sequence {child.id} is admitted already; release it first")
        if of_parent.in_step:
            raise ValueError(f"KVManager.fork: sequence {parent.id} is in the open step; end the step first")
        table = self._new_table(self.block_size)
        self.share(of_parent.table, table)
        root = self.tree.hold_root(of_parent.root.key)
        self._holdings[child.id] = Holding(child, root, table, list(of_parent.nodes), of_parent.end)

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Room for `n` more tokens behind the computed ones; False, and nothing changed, when there is none."""
        holding = self._require("grow", sequence)
        start, table = sequence.num_computed, holding.table
        missing = table.blocks_missing(start + n)
        copies = self.must_copy(table, start)
        if missing + copies > self.pool.num_available:
            return False
        if copies:
            self.copy_last(table)
        self._extend(holding, missing, start, start + n)
        return True
