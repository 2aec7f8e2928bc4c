"""Space: where regions of token slots come from: a list of holes, or a buddy allocator, ours or a learner's.

Says what the two can do alike. Knows nothing of sequences, tokens or what a slot holds.
"""

from __future__ import annotations

from typing import Protocol


class Space(Protocol):
    """Gives out regions of slots. What each method promises, `Regions` says."""

    num_slots: int
    taken: dict[int, int]  # first slot -> length

    @property
    def num_free(self) -> int: ...
    @property
    def largest_hole(self) -> int: ...
    @property
    def largest_region(self) -> int: ...
    def granted(self, n: int) -> int: ...
    def allocate(self, n: int) -> int | None: ...
    def free(self, base: int) -> None: ...
    def check(self) -> None: ...
