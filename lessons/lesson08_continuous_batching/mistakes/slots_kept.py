"""Thinks: memory notices by itself that somebody has gone."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def leave(self, sequence):
        self.places.remove(sequence)
