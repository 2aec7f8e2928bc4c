"""The engine's own manager under the exercise's names, so that the same check can be put to it.

The engine does all three in `fork` and `grow`. Here a table is given to a sequence that stands at the place in
question, and the engine is asked.
"""

from __future__ import annotations

from minipaged.memory import kv_manager
from minipaged.memory.block_table import BlockTable
from minipaged.memory.holding import Holding
from minipaged.plan import CopyBlock, Sampling
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams


class KVManager(kv_manager.KVManager):
    """As the engine's; `fork` and `grow` are untouched."""

    def share(self, parent: BlockTable, child: BlockTable) -> None:
        self._new_table = lambda block_size: child
        self.fork(self._holder(parent, parent.num_slots), self._sequence(0))

    def must_copy(self, table: BlockTable, start: int) -> bool:
        assert self.grow(self._holder(table, start), 1)
        return any(isinstance(operation, CopyBlock) for operation in self.take_operations())

    def copy_last(self, table: BlockTable) -> None:
        assert self.grow(self._holder(table, table.num_slots - 1), 1)

    def _holder(self, table: BlockTable, start: int) -> Sequence:
        """A sequence that holds the table, and has computed so many tokens."""
        sequence = self._sequence(start)
        self._holdings[sequence.id] = Holding(sequence, self.tree.hold_root(None), table, end=start)
        return sequence

    def _sequence(self, start: int) -> Sequence:
        request = Request(0, (0,), SamplingParams(), 0)
        sampling = Sampling(0.0, None, 1.0, 0, 0, 0)
        return Sequence(len(self._holdings), request, 0, [0] * (start + 1), sampling, num_computed=start)
