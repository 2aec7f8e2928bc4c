"""Thinks: fair is what is equal."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def share(self, uncomputed, budget, behind):
        return min(uncomputed, budget // (behind + 1), self.max_chunk_tokens)
