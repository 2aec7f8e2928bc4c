"""Thinks: memory will say no when it is enough."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        for sequence in self.places:
            self.compute(sequence)
        while self.queue:
            sequence = self.queue[0]
            if not self.admit(sequence):
                break
            self.queue.pop(0)
            self.places.append(sequence)
