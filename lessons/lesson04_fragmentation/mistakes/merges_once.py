"""Thinks that a region has one buddy, and that after the merge the work is done."""

from lessons.lesson04_fragmentation import solution
from lessons.lesson04_fragmentation.solution import *  # noqa: F403


class Buddy(solution.Buddy):
    def free(self, base: int) -> None:
        if base not in self.taken:
            raise ValueError(f"no region starts at slot {base}")
        size = self.taken.pop(base)
        if base ^ size in self.free_at[size]:
            self.free_at[size].remove(base ^ size)
            base, size = min(base, base ^ size), 2 * size
        self.free_at[size].add(base)
