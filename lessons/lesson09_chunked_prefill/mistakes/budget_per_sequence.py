"""Thinks: each sequence may have as many tokens as a step can hold."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def fill(self):
        for place, sequence in enumerate(self.places):
            behind = len(self.places) - place - 1
            self.compute(sequence, self.share(self.uncomputed(sequence), self.max_batch_tokens, behind))
        while self.queue and len(self.places) < self.max_sequences:
            if not self.admit(self.queue[0], min(self.max_batch_tokens, self.max_chunk_tokens)):
                break
            self.places.append(self.queue.pop(0))
