"""Lesson 8, our answer. The engine's own is in minipaged/scheduler.py: `schedule`, `commit`, `_leave`."""

from __future__ import annotations

from lessons.lesson08_continuous_batching.given import GivenScheduler
from minipaged.plan import Draw
from minipaged.request import Sequence


class Scheduler(GivenScheduler):
    """Who is in the next step, and what came of the last one."""

    def fill(self) -> None:
        """Those who run come first, so that no newcomer can take a step from them; then the queue, in its order."""
        for sequence in self.places:  # when memory runs out, the last of them gives way, and the loop ends earlier
            self.compute(sequence)
        while self.queue and len(self.places) < self.max_sequences:
            sequence = self.queue[0]
            if not self.admit(sequence):
                break  # nobody overtakes it
            self.queue.pop(0)
            self.places.append(sequence)

    def book(self, sequence: Sequence, num_tokens: int, draw: Draw | None) -> None:
        """What was computed is one thing, what was drawn another: the new token will be computed by the next step."""
        sequence.num_computed += num_tokens
        if draw is None:
            return
        sequence.tokens.append(draw.token_id)
        sequence.draws.append(draw)
        if draw.token_id in sequence.request.stop_token_ids:
            self.end(sequence, "stop")
        elif len(sequence.draws) >= sequence.request.params.max_tokens:
            self.end(sequence, "length")

    def leave(self, sequence: Sequence) -> None:
        """Now, not when the batch is done: there is no batch, there is only the next step."""
        self.places.remove(sequence)
        self.memory.release(sequence)
