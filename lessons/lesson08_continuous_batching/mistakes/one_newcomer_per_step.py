"""Thinks: one place becomes free, so one may come in."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        for sequence in self.places:
            self.compute(sequence)
        if self.queue and len(self.places) < self.max_sequences:
            sequence = self.queue[0]
            if self.admit(sequence):
                self.queue.pop(0)
                self.places.append(sequence)
