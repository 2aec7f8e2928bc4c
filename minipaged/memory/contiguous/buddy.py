"""The buddy allocator: regions that are powers of two, split in halves on the way down and merged on the way up.

The two halves of a region are buddies. A half starts at a multiple of its own length, so the address of its buddy
differs in one bit, the one that is worth the length: `base ^ size`.
"""

from __future__ import annotations

from minipaged.memory.contiguous.buddy_books import BuddyBooks


def region_size(n: int) -> int:
    """The smallest power of two that is at least `n`, which is at least 1."""
    return 1 << (n - 1).bit_length()


class Buddy(BuddyBooks):
    """Gives out regions of token slots, each a power of two long."""

    def granted(self, n: int) -> int:
        """Slots that a region for `n` takes."""
        return region_size(n)

    def allocate(self, n: int) -> int | None:
        """Take a region for `n` slots. Its length is `region_size(n)`.

        Returns:
            Its first slot; None, and nothing changed, when no free region is long enough.
        """
        wanted = region_size(n)
        sizes = [size for size, bases in self.free_at.items() if size >= wanted and bases]
        if not sizes:
            return None
        size = min(sizes)  # the smallest that is enough: a larger one may be needed whole
        base = min(self.free_at[size])
        self.free_at[size].remove(base)
        while size > wanted:  # keep the lower half, the upper one is free
            size //= 2
            self.free_at[size].add(base + size)
        self.taken[base] = size
        return base

    def free(self, base: int) -> None:
        """Give back the region that starts at `base`, and merge it with its buddy as long as that is free and whole.

        Raises:
            ValueError: no region that is taken starts there.
        """
        if base not in self.taken:
            raise ValueError(f"Buddy.free: no region starts at slot {base}")
        size = self.taken.pop(base)
        # A buddy that was split is not in the set of its full length, even when one of its pieces is free.
        while base ^ size in self.free_at.get(size, ()):
            self.free_at[size].remove(base ^ size)
            base = min(base, base ^ size)  # the pair starts at the lower one
            size *= 2
        self.free_at[size].add(base)
