"""Thinks: a newcomer may have all that is left."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        budget = self.max_batch_tokens
        for place, sequence in enumerate(self.places):
            behind = len(self.places) - place - 1
            n = self.share(self.uncomputed(sequence), budget, behind)
            budget -= self.compute(sequence, n)
        while self.queue and budget > 0 and len(self.places) < self.max_sequences:
            got = self.admit(self.queue[0], budget)
            if not got:
                break
            budget -= got
            self.places.append(self.queue.pop(0))
