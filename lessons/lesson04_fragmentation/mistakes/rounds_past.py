"""Thinks that the bit length of `n` gives the power of two that holds it; for a power of two that is one too many."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403


def region_size(n: int) -> int:
    return 1 << n.bit_length()


class Buddy(solution.Buddy):
    def allocate(self, n: int) -> int | None:
        return super().allocate(region_size(n))
