"""Lesson 4: write a buddy allocator.

A pool of slots is given out in regions. Each region is a power of two long and starts at a multiple of its length. A
region is split into two halves, its buddies, and a pair of free buddies becomes one region again.
"""

from __future__ import annotations

from minipaged.memory.contiguous.buddy_books import BuddyBooks


def region_size(n: int) -> int:
    """The smallest power of two that is at least `n`, which is at least 1.

    >>> [region_size(n) for n in (1, 2, 3, 4, 5, 531)]
    [1, 2, 4, 4, 8, 1024]
    """
    raise NotImplementedError("lesson 4, task 1: the smallest power of two that is enough")


class Buddy(BuddyBooks):
    """Gives out regions of token slots, each a power of two long.

    `BuddyBooks` has made the books, which `allocate` and `free` keep:

    - `self.free_at[size]` is the set of the first slots of all free regions of that size. There is a set, perhaps an
      empty one, for each power of two up to `self.largest_region`;
    - `self.taken[base]` is the size of the region that was given out at slot `base`.

    A pool of 16 slots, as it goes:

    >>> buddy = Buddy(16)             # free_at {1: {}, 2: {}, 4: {}, 8: {}, 16: {0}}
    >>> buddy.allocate(3)             # 16 is split into 8 + 8, the lower 8 into 4 + 4; the lower 4 is taken
    0
    >>> buddy.free_at[4], buddy.free_at[8], buddy.taken
    ({4}, {8}, {0: 4})
    >>> buddy.allocate(8)
    8
    >>> buddy.allocate(5)             # rounds up to 8; 4 slots are free, and that is not enough
    >>> buddy.free(8)
    >>> buddy.free(0)                 # merges with 4, then the 8 with the other 8
    >>> buddy.free_at[16]
    {0}
    """

    def granted(self, n: int) -> int:
        """Slots that a region for `n` takes. Given."""
        return region_size(n)

    def allocate(self, n: int) -> int | None:
        """Take a region for `n` slots. Its size is `region_size(n)`.

        Take it from the smallest free region that is large enough; of several of one size, from the one with the lowest
        first slot. While it is larger than it must be, split it: keep the lower half, the upper half is free.

        Returns:
            Its first slot; None, and nothing changed, when no free region is large enough.
        """
        raise NotImplementedError("lesson 4, task 1: take a region, split off a larger one")

    def free(self, base: int) -> None:
        """Give back the region that starts at `base`.

        While its buddy is free, and whole, the two become one region of twice the size; then that one has a buddy.
        A region of `size` slots at `base` has its buddy at `base ^ size` (exclusive or: the one bit is flipped).

        Raises:
            ValueError: no region that is taken starts there.
        """
        raise NotImplementedError("lesson 4, task 2: give a region back, and merge it with its buddy")
