"""GrowingCache: a region that is as long as its tokens are many, and grows with them.

It reserves nothing. Where the slots behind a region are taken, the region moves to a hole that is long enough, and all
its tokens are copied there: one `CopyBlock` per slot, which `num_copied` counts.
"""

from __future__ import annotations

from minipaged.memory.contiguous.contiguous_cache import ContiguousCache
from minipaged.memory.contiguous.regions import Regions
from minipaged.plan import CopyBlock
from minipaged.request import Sequence


class GrowingCache(ContiguousCache):
    """Contiguous on demand.

    Args:
        num_slots: token slots in the pool.
        poison_freed: see `ContiguousCache`.
    """

    def __init__(self, num_slots: int, *, poison_freed: bool = False) -> None:
        self.regions = Regions(num_slots)
        super().__init__(self.regions, poison_freed=poison_freed)
        self.num_moves = 0
        self.num_copied = 0  # slots, by moves

    def slots_for(self, sequence: Sequence, end: int) -> int:
        """Just its tokens."""
        return end

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Make the region longer, in place or elsewhere; False, and nothing changed, when no hole is long enough."""
        holding = self._require("grow", sequence)
        if not holding.table:
            return False
        old, end = holding.table, sequence.num_computed + n
        base = self.regions.resize(old[0], end)
        if base is None:
            return False
        self._held_slots += end - len(old)
        self._live_slots += end - holding.end
        holding.table, holding.end = tuple(range(base, base + end)), end
        if base != old[0]:
            self._move(old[: sequence.num_computed], holding.table)
            self._poison(tuple(slot for slot in old if not base <= slot < base + end))
        return True

    def _move(self, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        """Copy the computed tokens.

        A place that overlaps the old one lies below it, else the region would have stayed. The log is executed in
        order, so from the first slot on none is written before it was read.
        """
        self._operations += map(CopyBlock, old, new)
        self.num_moves += 1
        self.num_copied += len(old)
