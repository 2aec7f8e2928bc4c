"""Thinks: first come, first gone; that is fair."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class SwapManager(solution.SwapManager):
    def use(self, block: int, clean: bool) -> None:
        (self.clean.add if clean else self.clean.discard)(block)
