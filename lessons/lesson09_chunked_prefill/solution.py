"""Lesson 9, our answer. The engine's own is in minipaged/scheduler.py, in `schedule` and `_chunk`."""

from __future__ import annotations

from lessons.lesson09_chunked_prefill.given import GivenBudget


class Scheduler(GivenBudget):
    """How many tokens of whom are in the next step."""

    def share(self, uncomputed: int, budget: int, behind: int) -> int:
        """Three limits, and the smallest holds. It is never below 1, since the budget is at least max_sequences."""
        return min(uncomputed, budget - behind, self.max_chunk_tokens)

    def fill(self) -> None:
        """The budget is one for the whole step: what one has had, the next cannot have."""
        budget = self.max_batch_tokens
        for place, sequence in enumerate(self.places):  # when memory runs out, the last of them gives way
            behind = len(self.places) - place - 1
            n = self.share(self.uncomputed(sequence), budget, behind)
            budget -= self.compute(sequence, n)
        while self.queue and budget > 0 and len(self.places) < self.max_sequences:
            got = self.admit(self.queue[0], min(budget, self.max_chunk_tokens))
            if not got:
                break
            budget -= got  # not what it might have had: its prompt can be shorter
            self.places.append(self.queue.pop(0))

    def reaches_end(self, start: int, num_tokens: int, total: int) -> bool:
        """What comes next is known, but for the last token of the text."""
        return start + num_tokens == total
