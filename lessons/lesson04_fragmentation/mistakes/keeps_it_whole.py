"""Thinks that a free region is there to be given away as it is."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403
from lessons.lesson04_fragmentation.solution import region_size


class Buddy(solution.Buddy):
    def allocate(self, n: int) -> int | None:
        sizes = [size for size, bases in self.free_at.items() if size >= region_size(n) and bases]
        if not sizes:
            return None
        size = min(sizes)
        base = min(self.free_at[size])
        self.free_at[size].remove(base)
        self.taken[base] = size
        return base
