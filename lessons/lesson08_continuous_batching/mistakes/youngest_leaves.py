"""Thinks: who leaves is the one at the end of the list."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def leave(self, sequence):
        self.places.pop()
        self.memory.release(sequence)
