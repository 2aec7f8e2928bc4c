"""Thinks that a free region at the buddy's address is the buddy, whatever its size."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403


class Buddy(solution.Buddy):
    def free(self, base: int) -> None:
        if base not in self.taken:
            raise ValueError(f"no region starts at slot {base}")
        size = self.taken.pop(base)
        while size < self.largest_region:
            found = [bases for bases in self.free_at.values() if base ^ size in bases]
            if not found:
                break
            found[0].remove(base ^ size)
            base, size = min(base, base ^ size), 2 * size
        self.free_at[size].add(base)
