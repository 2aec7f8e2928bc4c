"""ContiguousRegions: one region of neighbouring slots per request, the way of base and length.

The naive part, at its best: a request takes exactly what it needs now, and grows in place as long as the next slot is
free. When a neighbour is in the way its whole region moves, to the first hole that is large enough.

    base 48, length 16:   position 9 is in slot 48 + 9 = 57
"""

from __future__ import annotations


class ContiguousRegions:
    """First fit over neighbouring slots.

    Args:
        num_slots: token slots in the memory, at least 1.

    Raises:
        ValueError: `num_slots` is below 1; a name that is there already, or is not.
        IndexError: from `slot`, a position that the request does not have.
    """

    def __init__(self, num_slots: int) -> None:
        if num_slots < 1:
            raise ValueError(f"ContiguousRegions: num_slots is {num_slots}; it must be at least 1")
        self.num_slots = num_slots
        self.num_moved = 0  # slots copied because a neighbour was in the way
        self.regions: dict[str, tuple[int, int]] = {}  # name -> (base, length), in no order

    @property
    def live_slots(self) -> int:
        return sum(length for _, length in self.regions.values())

    @property
    def free_slots(self) -> int:
        return self.num_slots - self.live_slots

    @property
    def holes(self) -> list[tuple[int, int]]:
        """The free stretches between the regions: (base, length), in the order in which they lie."""
        holes, end = [], 0
        for base, length in [*sorted(self.regions.values()), (self.num_slots, 0)]:
            if base > end:
                holes.append((end, base - end))
            end = base + length
        return holes

    @property
    def largest_hole(self) -> int:
        return max((length for _, length in self.holes), default=0)

    def admit(self, name: str, num_tokens: int) -> bool:
        """Take the first hole of `num_tokens` slots; False when there is none, however many are free in all."""
        if name in self.regions:
            raise ValueError(f"ContiguousRegions.admit: {name} has a region already")
        base = self._first_fit(num_tokens)
        if base is None:
            return False
        self.regions[name] = (base, num_tokens)
        return True

    def append(self, name: str) -> bool:
        """One more slot at the end of the region; if a neighbour lies there, the region moves first."""
        base, length = self._require(name)
        if any(hole_base == base + length for hole_base, _ in self.holes):
            self.regions[name] = (base, length + 1)
            return True
        to = self._first_fit(length + 1)
        if to is None:
            return False
        self.regions[name] = (to, length + 1)
        self.num_moved += length
        return True

    def release(self, name: str) -> None:
        """The region is free."""
        self._require(name)
        del self.regions[name]

    def slot(self, name: str, position: int) -> int:
        """Where the token at `position` lies: its distance from the base."""
        base, length = self._require(name)
        if not 0 <= position < length:
            raise IndexError(f"ContiguousRegions.slot: {name} has positions 0 to {length - 1}, not {position}")
        return base + position

    def _first_fit(self, num_tokens: int) -> int | None:
        return next((base for base, length in self.holes if length >= num_tokens), None)

    def _require(self, name: str) -> tuple[int, int]:
        if name not in self.regions:
            raise ValueError(f"ContiguousRegions: {name} has no region; admit it first")
        return self.regions[name]
