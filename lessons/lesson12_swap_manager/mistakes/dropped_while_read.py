"""Thinks: least recently used, clean ones first; whoever reads has read by then."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def victim(self) -> int | None:
        clean = [block for block in self.order if block in self.clean]
        return next(iter(clean or self.order), None)
