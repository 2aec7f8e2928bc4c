"""Prefill first: a prompt that has come is computed at once and whole, in a step of its own. The naive way.

It is good to whoever comes, and engines did so for long: the first token of an answer could not be there earlier. Those
who are writing pay for it.
"""

from __future__ import annotations

from lessons.lesson08_continuous_batching.solution import Scheduler


class PrefillFirst(Scheduler):
    """Two kinds of steps: one computes prompts, the other gives everybody a token."""

    def fill(self) -> None:
        """While there is a prompt to compute, nothing else is."""
        for sequence in [one for one in self.places if self.uncomputed(one) > 1]:
            self.compute(sequence)
        while self.queue and len(self.places) < self.max_sequences:
            if not self.admit(self.queue[0]):
                break
            self.places.append(self.queue.pop(0))
        if not self.planned:
            for sequence in self.places:
                self.compute(sequence)
