"""Thinks that the buddy is the region that follows."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403


class Buddy(solution.Buddy):
    def free(self, base: int) -> None:
        if base not in self.taken:
            raise ValueError(f"no region starts at slot {base}")
        size = self.taken.pop(base)
        while base + size in self.free_at.get(size, ()):
            self.free_at[size].remove(base + size)
            size *= 2
        self.free_at.setdefault(size, set()).add(base)
