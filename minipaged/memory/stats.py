"""MemoryStats: what the memory has done and holds, in numbers. Plain data, read by whoever prints or measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Blocks are counted as they stand, everything else since the beginning.

    Args:
        free_blocks: of the device pool, those that hold nothing of use.
        evictable_blocks: those that nobody holds, with content that may be wanted again.
        held_blocks: those that a sequence holds; the three sum to the pool's size.
        host_blocks: of the host pool, those that hold a copy.
        tokens_from_device: shared in place, by admissions and by running sequences.
        tokens_from_host: brought back by `SwapIn`.
        tokens_copied: shared inside a block, by copying it.
        tokens_recomputed: computed once, given up, and not found again.
        copies: blocks copied within the device pool.
        swaps_out: blocks copied to the host.
        swaps_in: blocks brought back from it.
        evictions: device blocks given up; those with a copy on the host cost no `SwapOut`.
        drops: contents lost for good.
        bytes_moved: by copies and swaps; 0 when nobody told the manager what a block weighs.
    """

    free_blocks: int
    evictable_blocks: int
    held_blocks: int
    host_blocks: int
    tokens_from_device: int
    tokens_from_host: int
    tokens_copied: int
    tokens_recomputed: int
    copies: int
    swaps_out: int
    swaps_in: int
    evictions: int
    drops: int
    bytes_moved: int


@dataclass(slots=True)
class Counts:
    """What `MemoryStats` says since the beginning, as it grows. The names are explained there."""

    tokens_from_device: int = 0
    tokens_from_host: int = 0
    tokens_copied: int = 0
    tokens_recomputed: int = 0
    copies: int = 0
    swaps_out: int = 0
    swaps_in: int = 0
    evictions: int = 0
    drops: int = 0
