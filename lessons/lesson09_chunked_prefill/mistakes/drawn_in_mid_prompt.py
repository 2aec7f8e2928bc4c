"""Thinks: each step gives each sequence a token."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def reaches_end(self, start, num_tokens, total):
        return True
