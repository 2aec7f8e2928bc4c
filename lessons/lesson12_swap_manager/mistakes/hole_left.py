"""Thinks: when there is no room, there is nothing to be done."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.given import Node, SwapOut
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class Tiers(solution.Tiers):
    def evict(self, node: Node, block: int) -> None:
        if node.host is not None:
            assert self.swap is not None
            self.swap.mark_sole(node.host)
            return
        host = self.take_host_block()
        if host is not None:
            self.operations.append(SwapOut(block, host))
            node.host = host
