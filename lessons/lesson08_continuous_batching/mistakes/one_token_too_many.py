"""Thinks: more than max_tokens is too many, so that is when it ends."""

from lessons.lesson08_continuous_batching import solution
from lessons.lesson08_continuous_batching.solution import *  # noqa: F403


class Scheduler(solution.Scheduler):
    def book(self, sequence, num_tokens, draw):
        sequence.num_computed += num_tokens
        if draw is None:
            return
        sequence.tokens.append(draw.token_id)
        sequence.draws.append(draw)
        if draw.token_id in sequence.request.stop_token_ids:
            self.end(sequence, "stop")
        elif len(sequence.draws) > sequence.request.params.max_tokens:
            self.end(sequence, "length")
