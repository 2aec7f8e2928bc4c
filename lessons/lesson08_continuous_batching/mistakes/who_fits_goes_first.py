"""Thinks: no place should be empty while somebody in the queue would fit."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        for sequence in self.places:
            self.compute(sequence)
        for sequence in list(self.queue):
            if len(self.places) < self.max_sequences and self.admit(sequence):
                self.queue.remove(sequence)
                self.places.append(sequence)
