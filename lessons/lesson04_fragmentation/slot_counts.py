"""SlotCounts: where every slot of the pool is in one step, in the terms of the PagedAttention paper (its section 3.1).

    live        holds a token ("token states")
    reserved    held, empty, and this same request will use it later ("reservation")
    internal    held, and never used until it is given back ("internal fragmentation")
    external    free, and enough in sum for the request that waits, but in no hole that is long enough
    short       free, and too few in sum for the request that waits
    idle        free, and nobody waits for it

It needs to know how long each answer will be. The scheduler and the memory do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class SlotCounts:
    """Slots by what becomes of them; the fields are explained above. Over several steps, sums."""

    live: int = 0
    reserved: int = 0
    internal: int = 0
    external: int = 0
    short: int = 0
    idle: int = 0

    def __add__(self, other: SlotCounts) -> SlotCounts:
        return SlotCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def held(self) -> int:
        return self.live + self.reserved + self.internal

    @property
    def total(self) -> int:
        return self.held + self.external + self.short + self.idle

    @property
    def utilisation(self) -> float:
        """Live slots ÷ held slots."""
        return self.live / self.held if self.held else 1.0

    @property
    def pool_utilisation(self) -> float:
        """Live slots ÷ all slots."""
        return self.live / self.total


def held_counts(regions: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    """(live, reserved, internal) of what sequences hold.

    Args:
        regions: of each sequence the slots that it holds, how many of them hold a token, and how many will at its end.
    """
    live = reserved = internal = 0
    for size, now, in_the_end in regions:
        used = min(size, in_the_end)
        live += now
        reserved += used - now
        internal += size - used
    return live, reserved, internal
