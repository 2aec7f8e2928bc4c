"""Thinks: the content is back on the device, so the host block can be given back."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.given import Node
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class Tiers(solution.Tiers):
    def bring_back(self, node: Node) -> int:
        block = super().bring_back(node)
        assert self.swap is not None and node.host is not None
        self.swap.give_back(node.host)
        node.host = None
        return block
