"""Thinks: a token is drawn when all of the text has been computed in this step."""

from lessons.lesson09_chunked_prefill import solution
from lessons.lesson09_chunked_prefill.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def reaches_end(self, start, num_tokens, total):
        return start == 0 and num_tokens == total
