"""BuddyBooks: what a buddy allocator writes down, and how it is verified. Taking and giving back stands on it.

Every region is a power of two long and starts at a multiple of its length. The pool starts as its binary digits: 4096
slots are one region, 12 slots are one of 8 and one of 4.
"""

from __future__ import annotations


class BuddyBooks:
    """Free and taken regions of a pool of slots.

    Args:
        num_slots: slots in the pool, at least 1.

    Attributes:
        free_at: length -> the first slots of all free regions of that length. There is a set, perhaps an empty one, for
            every power of two up to the largest region.
        taken: first slot -> length, of the regions that are taken.

    Raises:
        ValueError: `num_slots` is below 1.
    """

    def __init__(self, num_slots: int) -> None:
        if num_slots < 1:
            raise ValueError(f"Buddy: num_slots is {num_slots}; it must be at least 1")
        self.num_slots = num_slots
        self.largest_region = 1 << (num_slots.bit_length() - 1)
        self.free_at: dict[int, set[int]] = {1 << k: set() for k in range(num_slots.bit_length())}
        self.taken: dict[int, int] = {}
        base = 0
        for size in sorted(self.free_at, reverse=True):
            if num_slots & size:
                self.free_at[size].add(base)
                base += size

    @property
    def num_free(self) -> int:
        """Free slots, in all regions together."""
        return sum(size * len(bases) for size, bases in self.free_at.items())

    @property
    def largest_hole(self) -> int:
        """Slots of the longest free region. Two free neighbours that are no buddies are two regions."""
        return max((size for size, bases in self.free_at.items() if bases), default=0)

    @property
    def holes(self) -> list[tuple[int, int]]:
        """(first slot, length) of the free regions, by first slot."""
        return sorted((base, size) for size, bases in self.free_at.items() for base in bases)

    def check(self) -> None:
        """Verify that the regions tile the pool, each a power of two at its multiple, and no free buddies are apart.

        Raises:
            AssertionError: names the slot and what is wrong there.
        """
        end = 0
        for base, size in sorted([*self.holes, *self.taken.items()]):
            assert size > 0 and size & (size - 1) == 0, f"slot {base}: a region of {size} slots, no power of two"
            assert base % size == 0, f"slot {base}: a region of {size} slots must start at a multiple of {size}"
            assert base == end, f"slot {min(base, end)}: it is in two regions, or in none"
            end = base + size
        assert end == self.num_slots, f"the regions end at slot {end} of {self.num_slots}"
        for size, bases in self.free_at.items():
            for base in bases:
                assert base ^ size not in bases, f"slot {base}: free, as its buddy {base ^ size} is, both of {size}"
