"""Thinks: a newcomer has waited long enough; it should be served first."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        running = list(self.places)
        while self.queue and len(self.places) < self.max_sequences:
            sequence = self.queue[0]
            if not self.admit(sequence):
                break
            self.queue.pop(0)
            self.places.append(sequence)
        for sequence in running:
            self.compute(sequence)
