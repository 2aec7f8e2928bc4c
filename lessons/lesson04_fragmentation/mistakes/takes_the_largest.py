"""Thinks that where there is most room, the split does least harm."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403
from lessons.lesson04_fragmentation.solution import region_size


class Buddy(solution.Buddy):
    def allocate(self, n: int) -> int | None:
        wanted = region_size(n)
        sizes = [size for size, bases in self.free_at.items() if size >= wanted and bases]
        if not sizes:
            return None
        size = max(sizes)
        base = min(self.free_at[size])
        self.free_at[size].remove(base)
        while size > wanted:
            size //= 2
            self.free_at[size].add(base + size)
        self.taken[base] = size
        return base
