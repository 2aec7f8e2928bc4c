"""Thinks: the places are cleared when everybody is done."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def leave(self, sequence):
        self.memory.release(sequence)
        if all(other is sequence or other.finish_reason for other in self.places):
            self.places.clear()
