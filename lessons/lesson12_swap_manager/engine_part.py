"""The engine's own swap manager and tiers under the exercise's names, so that the same check can be put to them.

The engine keeps two queues, one of clean copies and one of sole ones, so that its victim is found at once. The lesson's
keeps one, which is easier to follow. They drop the same copies in the same order.
"""

from __future__ import annotations

from lessons.lesson12_swap_manager.given import GivenSwap, GivenTiers, Node
from minipaged.memory import swap, tiers

__all__ = ["SwapManager", "Tiers"]


class SwapManager(GivenSwap):
    """The engine's, asked with the state that the exercise's has."""

    def take(self) -> int:
        self._read()
        block = swap.SwapManager.take(self)
        self._write_back([*self.order, block])
        return block

    def use(self, block: int, clean: bool) -> None:
        self._read()
        (swap.SwapManager.mark_clean if clean else swap.SwapManager.mark_sole)(self, block)
        self._write_back([*(other for other in self.order if other != block), block])

    def give_back(self, block: int) -> None:
        self._read()
        swap.SwapManager.give_back(self, block)
        self._write_back([other for other in self.order if other != block])

    def victim(self) -> int | None:
        self._read()
        return swap.SwapManager.victim(self)

    def _read(self) -> None:
        """The two queues, from what is known of each block."""
        self._clean.clear()
        self._sole.clear()
        for block in self.order:
            if block not in self.reading:
                (self._clean if block in self.clean else self._sole)[block] = None

    def _write_back(self, order: list[int]) -> None:
        self.order[:] = order
        unread = set(order) - self.reading
        self.clean = (self.clean & set(order) - unread) | {block for block in unread if block in self._clean}


class Tiers(GivenTiers):
    """The engine's, whose own two moves do the rest of the bookkeeping, too."""

    def evict(self, node: Node, block: int) -> None:
        counts = (self.counts.evictions, self.counts.swaps_out)
        tiers.Tiers._evicted(self, node, block)
        self.counts.evictions, self.counts.swaps_out = counts

    def bring_back(self, node: Node) -> int:
        swaps_in = self.counts.swaps_in
        block = tiers.Tiers._swap_in(self, node)
        self.counts.swaps_in = swaps_in
        return block
