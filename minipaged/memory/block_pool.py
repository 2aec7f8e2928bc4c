"""BlockPool: which physical blocks are free, and how many tables hold each of the others.

Knows nothing of sequences, tokens or tables. A block is a number in `range(num_blocks)`.
"""

from __future__ import annotations


class BlockPool:
    """Free list and reference counts of one pool. Every operation is O(1).

    Args:
        num_blocks: blocks in the pool, at least 1.

    Raises:
        ValueError: `num_blocks` is below 1, or a block is released or held that is not held.
    """

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 1:
            raise ValueError(f"BlockPool: num_blocks is {num_blocks}; it must be at least 1")
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))  # a stack: block 0 is the first to go
        self._counts = [0] * num_blocks  # tables that hold each block

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_held(self) -> int:
        return self.num_blocks - len(self._free)

    def count(self, block: int) -> int:
        """How many tables hold `block`."""
        return self._counts[block]

    def allocate(self) -> int:
        """Take a free block; its count becomes 1. The caller has looked at `num_free`."""
        block = self._free.pop()
        self._counts[block] = 1
        return block

    def hold(self, block: int) -> None:
        """One more table holds `block`."""
        self._require_held("hold", block)
        self._counts[block] += 1

    def release(self, block: int) -> bool:
        """One table less holds `block`; True when it was the last and the block is free again."""
        self._require_held("release", block)
        self._counts[block] -= 1
        if self._counts[block]:
            return False
        self._free.append(block)
        return True

    def check(self) -> None:
        """Verify the books: every block is exactly one of free and held.

        Raises:
            AssertionError: names the block and what is wrong with it.
        """
        free = set(self._free)
        assert len(free) == len(self._free), "a block is in the free list twice"
        for block, count in enumerate(self._counts):
            assert (count == 0) == (block in free), f"block {block} has count {count} and is {block in free=}"

    def _require_held(self, verb: str, block: int) -> None:
        if self._counts[block] == 0:
            raise ValueError(f"BlockPool.{verb}: block {block} is free; nobody holds it")
