"""Thinks: what was used last has had its use."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def victim(self) -> int | None:
        can_go = [block for block in self.order if block not in self.reading]
        clean = [block for block in can_go if block in self.clean]
        candidates = clean or can_go
        return candidates[-1] if candidates else None
