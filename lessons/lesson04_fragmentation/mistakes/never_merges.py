"""Thinks that to give back is to write down as free, and that is all."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403


class Buddy(solution.Buddy):
    def free(self, base: int) -> None:
        if base not in self.taken:
            raise ValueError(f"no region starts at slot {base}")
        self.free_at[self.taken.pop(base)].add(base)
