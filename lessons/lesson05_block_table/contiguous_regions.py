"""ContiguousRegions: one region of neighbouring slots per request, the way of base and length.

The naive part, at its best: a request takes exactly what it needs now, and grows in place as long as the next slot is
free. When a neighbour is in the way its whole region moves, to the first hole that is large enough.

    base 48, length 16:   position 9 is in slot 48 + 9 = 57

Which slots are free, and where a region fits, lesson 4's list of holes says.
"""

from __future__ import annotations

from minipaged.memory.contiguous.regions import Regions


class ContiguousRegions:
    """First fit over neighbouring slots.

    Args:
        num_slots: token slots in the memory, at least 1.

    Raises:
        ValueError: `num_slots` is below 1; a name that is there already, or is not.
        IndexError: from `slot`, a position that the request does not have.
    """

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.num_moved = 0  # slots copied because a neighbour was in the way
        self._space = Regions(num_slots)
        self._bases: dict[str, int] = {}  # name -> first slot

    @property
    def regions(self) -> dict[str, tuple[int, int]]:
        """Name -> (base, length)."""
        return {name: (base, self._space.taken[base]) for name, base in self._bases.items()}

    @property
    def live_slots(self) -> int:
        return self.num_slots - self.free_slots

    @property
    def free_slots(self) -> int:
        return self._space.num_free

    @property
    def largest_hole(self) -> int:
        return self._space.largest_hole

    def admit(self, name: str, num_tokens: int) -> bool:
        """Take the first hole of `num_tokens` slots; False when there is none, however many are free in all."""
        if name in self._bases:
            raise ValueError(f"ContiguousRegions.admit: {name} has a region already")
        base = self._space.allocate(num_tokens)
        if base is None:
            return False
        self._bases[name] = base
        return True

    def append(self, name: str) -> bool:
        """One more slot at the end of the region; if a neighbour lies there, the region moves first."""
        base, length = self._require(name)
        to = self._space.resize(base, length + 1)
        if to is None:
            return False
        if to != base:
            self._bases[name] = to
            self.num_moved += length
        return True

    def release(self, name: str) -> None:
        """The region is free."""
        base, _ = self._require(name)
        self._space.free(base)
        del self._bases[name]

    def slot(self, name: str, position: int) -> int:
        """Where the token at `position` lies: its distance from the base."""
        base, length = self._require(name)
        if not 0 <= position < length:
            raise IndexError(f"ContiguousRegions.slot: {name} has positions 0 to {length - 1}, not {position}")
        return base + position

    def _require(self, name: str) -> tuple[int, int]:
        if name not in self._bases:
            raise ValueError(f"ContiguousRegions: {name} has no region; admit it first")
        return self._bases[name], self._space.taken[self._bases[name]]
