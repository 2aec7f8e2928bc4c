"""Thinks that only a region of just the right size will do, and refuses when none is there."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403
from lessons.lesson04_fragmentation.solution import region_size


class Buddy(solution.Buddy):
    def allocate(self, n: int) -> int | None:
        size = region_size(n)
        if not self.free_at.get(size):
            return None
        base = min(self.free_at[size])
        self.free_at[size].remove(base)
        self.taken[base] = size
        return base
