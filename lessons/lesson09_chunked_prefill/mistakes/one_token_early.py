"""Thinks: positions are counted from 0, so the last one is total - 1."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def reaches_end(self, start, num_tokens, total):
        return start + num_tokens >= total - 1
