"""SwapManager: the host pool's books: which host blocks are free, and which copy goes first when it is full.

Knows nothing of content and moves nothing: a host block is a number in `range(num_blocks)`, as in `BlockPool`. A copy
is *clean* while the same content is on the device too, so that losing it loses nothing; else it is *sole*.

    free ──take──▶ sole ◀──mark_sole / mark_clean──▶ clean       pin: being read, cannot go; mark_* ends it
"""

from __future__ import annotations

from collections import OrderedDict


class SwapManager:
    """The host pool's books. Every operation is O(1).

    Args:
        num_blocks: blocks in the host pool, at least 1 (with none, there is no swap manager).

    Raises:
        ValueError: `num_blocks` is below 1.
    """

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 1:
            raise ValueError(f"SwapManager: num_blocks is {num_blocks}; it must be at least 1")
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._clean: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._sole: OrderedDict[int, None] = OrderedDict()  # least recently used first, children before parents

    @property
    def num_free(self) -> int:
        """Host blocks that hold nothing."""
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Host blocks that hold a copy."""
        return self.num_blocks - len(self._free)

    @property
    def drop_order(self) -> tuple[int, ...]:
        """The copies in the order in which they go when room is needed."""
        return (*self._clean, *self._sole)

    def victim(self) -> int | None:
        """The copy that goes next; None when every host block is free or being read."""
        for order in (self._clean, self._sole):
            if order:
                return next(iter(order))
        return None

    def take(self) -> int:
        """Take a free host block, for a sole copy. The caller has looked at `num_free`."""
        block = self._free.pop()
        self._sole[block] = None
        return block

    def give_back(self, block: int) -> None:
        """The copy is dropped; its block is free."""
        self._leave(block)
        self._free.append(block)

    def pin(self, block: int) -> None:
        """The copy is about to be read: it cannot be dropped until it is marked again."""
        self._leave(block)

    def mark_clean(self, block: int) -> None:
        """The content is on the device too. Counts as use."""
        self._leave(block)
        self._clean[block] = None

    def mark_sole(self, block: int) -> None:
        """The content is on the host only. Counts as use."""
        self._leave(block)
        self._sole[block] = None

    def is_clean(self, block: int) -> bool:
        """Whether the copy's content is on the device, too."""
        return block in self._clean

    def _leave(self, block: int) -> None:
        self._clean.pop(block, None)
        self._sole.pop(block, None)

    def check(self) -> None:
        """Verify that every host block is exactly one of free, clean, sole (none is being read between calls).

        Raises:
            AssertionError: names the block.
        """
        free = set(self._free)
        assert len(free) == len(self._free), "a host block is in the free list twice"
        for block in range(self.num_blocks):
            states = [block in free, block in self._clean, block in self._sole]
            assert sum(states) == 1, f"host block {block}: free, clean, sole are {states}"
