"""Thinks: least recently used is the whole rule."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def victim(self) -> int | None:
        return next((block for block in self.order if block not in self.reading), None)
