"""Thinks: what leaves the device must be written to the host."""

from lessons.lesson12_swap_manager import solution
from lessons.lesson12_swap_manager.given import Node, SwapOut
from lessons.lesson12_swap_manager.solution import *  # noqa: F403


class Tiers(solution.Tiers):
    def evict(self, node: Node, block: int) -> None:
        host = self.take_host_block()
        if host is None:
            self.drop(node)
        else:
            self.operations.append(SwapOut(block, host))
            node.host = host
