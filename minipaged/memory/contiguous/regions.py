"""Regions: contiguous runs of token slots, given out first fit from a list of holes.

A hole is a run of free slots. A region takes the beginning of the first hole that is long enough; one that is given
back becomes a hole again, and holes that touch become one. Knows nothing of sequences, tokens or what a slot holds.
"""

from __future__ import annotations

from bisect import bisect_left


class Regions:
    """A pool of slots `0 … num_slots - 1`. Every operation is O(holes).

    Args:
        num_slots: slots in the pool, at least 1.

    Raises:
        ValueError: `num_slots` is below 1, or a region that nobody holds is given back or resized.
    """

    def __init__(self, num_slots: int) -> None:
        if num_slots < 1:
            raise ValueError(f"Regions: num_slots is {num_slots}; it must be at least 1")
        self.num_slots = num_slots
        self.num_free = num_slots
        self.holes: list[tuple[int, int]] = [(0, num_slots)]  # (base, length), by base; no two touch
        self.taken: dict[int, int] = {}  # base -> length

    @property
    def largest_hole(self) -> int:
        """Slots of the longest hole: what the next region may have at most."""
        return max((length for _, length in self.holes), default=0)

    @property
    def largest_region(self) -> int:
        """Slots of the longest region that the empty pool could give."""
        return self.num_slots

    def granted(self, n: int) -> int:
        """Slots that a region for `n` takes: just these."""
        return n

    def allocate(self, n: int) -> int | None:
        """Take a region of `n` slots, at least 1.

        Returns:
            Its first slot; None, and nothing changed, when no hole is long enough, however many are free in sum.
        """
        for i, (base, length) in enumerate(self.holes):
            if length >= n:
                self._take(i, base, n)
                return base
        return None

    def free(self, base: int) -> None:
        """Give back the region that starts at `base`; the holes at both sides and it become one."""
        if base not in self.taken:
            raise ValueError(f"Regions.free: no region starts at slot {base}")
        n = self.taken.pop(base)
        self.num_free += n
        start, end = base, base + n
        i = bisect_left(self.holes, (base,))
        first = last = i
        if i < len(self.holes) and self.holes[i][0] == end:
            end += self.holes[i][1]
            last = i + 1
        if i > 0 and sum(self.holes[i - 1]) == base:
            start = self.holes[i - 1][0]
            first = i - 1
        self.holes[first:last] = [(start, end - start)]

    def resize(self, base: int, n: int) -> int | None:
        """Make the region at `base` `n` slots long: where it stands if it can, else elsewhere.

        Its own slots count as free when a place is looked for, so the new region may overlap the old one.

        Returns:
            Its first slot now; None, and nothing changed, when no hole is long enough.
        """
        if base not in self.taken:
            raise ValueError(f"Regions.resize: no region starts at slot {base}")
        holes, length = list(self.holes), self.taken[base]
        self.free(base)
        i = bisect_left(self.holes, (base + 1,)) - 1  # the hole in which the region lay
        start, room = self.holes[i]
        if base + n <= start + room:
            self._take(i, base, n)
            return base
        found = self.allocate(n)
        if found is None:
            self.holes, self.taken[base] = holes, length
            self.num_free -= length
        return found

    def check(self) -> None:
        """Verify that regions and holes tile the pool, and that no two holes touch.

        Raises:
            AssertionError: names the slot and what is wrong there.
        """
        end, after_hole = 0, False
        runs = [(*hole, True) for hole in self.holes] + [(*region, False) for region in self.taken.items()]
        for base, length, is_hole in sorted(runs):
            assert length > 0, f"slot {base}: a run of {length} slots"
            assert base == end, f"slot {min(base, end)}: it is in two runs, or in none"
            assert not (is_hole and after_hole), f"slot {base}: two holes touch"
            end, after_hole = base + length, is_hole
        assert end == self.num_slots, f"the runs end at slot {end} of {self.num_slots}"
        assert self.num_free == sum(length for _, length in self.holes), f"num_free is {self.num_free}"

    def _take(self, i: int, base: int, n: int) -> None:
        """A region out of hole `i`, which it lies within; what is left at each side stays a hole."""
        start, length = self.holes[i]
        sides = [(start, base - start), (base + n, start + length - base - n)]
        self.holes[i : i + 1] = [side for side in sides if side[1]]
        self.taken[base] = n
        self.num_free -= n
