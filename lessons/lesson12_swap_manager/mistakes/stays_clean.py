"""Thinks: a copy that was clean once is clean for good."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def use(self, block: int, clean: bool) -> None:
        self.order.remove(block)
        self.order.append(block)
        if clean:
            self.clean.add(block)
