"""Thinks that halving the size is all there is to a split; nobody writes the other half down."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403
from lessons.lesson04_fragmentation.solution import region_size


class Buddy(solution.Buddy):
    def allocate(self, n: int) -> int | None:
        wanted = region_size(n)
        sizes = [size for size, bases in self.free_at.items() if size >= wanted and bases]
        if not sizes:
            return None
        base = min(self.free_at[min(sizes)])
        self.free_at[min(sizes)].remove(base)
        self.taken[base] = wanted
        return base
