"""Thinks: one copy is as good as another, so take the one with the lowest number."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def victim(self) -> int | None:
        can_go = [block for block in self.order if block not in self.reading]
        clean = [block for block in can_go if block in self.clean]
        return min(clean or can_go, default=None)
