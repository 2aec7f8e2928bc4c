"""Thinks: who has most to do should begin."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        budget = self.max_batch_tokens
        running = list(self.places)
        while self.queue and budget > 0 and len(self.places) < self.max_sequences:
            got = self.admit(self.queue[0], min(budget, self.max_chunk_tokens))
            if not got:
                break
            budget -= got
            self.places.append(self.queue.pop(0))
        for sequence in running:
            n = min(self.uncomputed(sequence), budget)
            if n > 0:
                budget -= self.compute(sequence, n)
