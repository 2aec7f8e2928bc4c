"""BlockPool: the device pool's free list, reference counts, and the order in which cached blocks are given up.

Knows nothing of sequences, tokens or tables, nor of what a block holds: a block is a number in `range(num_blocks)`, and
whoever releases it says whether its content is worth keeping.

A block is always exactly one of three things::

              allocate               release, cached
      free ─────────────▶ held ◀───────────────────────▶ evictable
        ▲   release, not   │              hold               │ evict: into new hands, held again
        └──────────────────┘                                 │
        └──────────────────────────────── discard ───────────┘
"""

from __future__ import annotations

from collections import OrderedDict


class BlockPool:
    """The device pool's books. Taking, sharing and giving back a block is O(1); the views and `check` are O(blocks).

    Args:
        num_blocks: blocks in the pool, at least 1.

    Raises:
        ValueError: `num_blocks` is below 1.
    """

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 1:
            raise ValueError(f"BlockPool: num_blocks is {num_blocks}; it must be at least 1")
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))  # a stack: block 0 is the first to go
        self._counts = [0] * num_blocks  # tables that hold each block
        self._evictable: OrderedDict[int, None] = OrderedDict()  # least recently used first

    @property
    def num_free(self) -> int:
        """Blocks that hold nothing of use."""
        return len(self._free)

    @property
    def num_evictable(self) -> int:
        """Blocks that nobody holds, with content that may be wanted again."""
        return len(self._evictable)

    @property
    def num_available(self) -> int:
        """Blocks that can be had: free, or evictable."""
        return len(self._free) + len(self._evictable)

    @property
    def num_held(self) -> int:
        """Blocks that at least one table holds."""
        return self.num_blocks - self.num_available

    @property
    def eviction_order(self) -> tuple[int, ...]:
        """The evictable blocks, the next to go first."""
        return tuple(self._evictable)

    @property
    def free_blocks(self) -> tuple[int, ...]:
        """The free blocks, the next to be taken first."""
        return tuple(reversed(self._free))

    def count(self, block: int) -> int:
        """How many tables hold `block`."""
        return self._counts[block]

    def allocate(self) -> int:
        """Take a free block; its count becomes 1. The caller has looked at `num_free`."""
        block = self._free.pop()
        self._counts[block] = 1
        return block

    def evict(self) -> int:
        """Take the least recently used evictable block; its count becomes 1. The caller sees to its old content."""
        block, _ = self._evictable.popitem(last=False)
        self._counts[block] = 1
        return block

    def hold(self, block: int) -> None:
        """One more table holds `block`, which is held or evictable."""
        if self._counts[block] == 0:
            del self._evictable[block]
        self._counts[block] += 1

    def release(self, block: int, *, cached: bool) -> bool:
        """One table less holds `block`. True when it was the last.

        Args:
            block: a held block.
            cached: its content may be wanted again, so without a holder it is evictable and not free.

        Raises:
            ValueError: nobody holds the block.
        """
        if self._counts[block] == 0:
            raise ValueError(f"BlockPool.release: nobody holds block {block}")
        self._counts[block] -= 1
        if self._counts[block]:
            return False
        if cached:
            self._evictable[block] = None
        else:
            self._free.append(block)
        return True

    def discard(self, block: int) -> None:
        """An evictable block's content is of no more use: it is free."""
        del self._evictable[block]
        self._free.append(block)

    def check(self) -> None:
        """Verify that every block is exactly one of free, held, evictable.

        Raises:
            AssertionError: names the block and what is wrong with it.
        """
        free = set(self._free)
        assert len(free) == len(self._free), "a block is in the free list twice"
        for block, count in enumerate(self._counts):
            states = [count > 0, block in free, block in self._evictable]
            assert sum(states) == 1, f"block {block}: held, free, evictable are {states}"
