"""Lesson 9: the token budget. Three tasks; `python -m lessons check 9` says how you stand.

What is given: `self.max_batch_tokens`, the budget of a step; `self.max_chunk_tokens`, what one sequence may have of it
at most; and from lesson 8 `self.places`, `self.queue` (oldest first) and `self.max_sequences`.

A sequence has tokens that are not computed yet: one, if it is writing; many, if its prompt has just come. There is no
other difference between the two.
"""

from __future__ import annotations

from lessons.lesson09_chunked_prefill.given import GivenBudget


class Scheduler(GivenBudget):
    """How many tokens of whom are in the next step."""

    def share(self, uncomputed: int, budget: int, behind: int) -> int:
        """Task 1. How many tokens one running sequence may have in this step.

        As many as it can use, but: not more than `self.max_chunk_tokens`, and one token of the budget must remain for
        each of those behind it, so that everybody who writes goes on.

        Args:
            uncomputed: tokens that it has not computed yet, at least 1.
            budget: what is left of the step's budget; more than `behind`.
            behind: running sequences that come after it.

        max_chunk_tokens 100: share(480, 64, 3) -> 61; share(480, 512, 3) -> 100; share(1, 64, 3) -> 1
        """
        raise NotImplementedError("lesson 9, task 1: say how many tokens one may have")

    def fill(self) -> None:
        """Task 2. Share out the budget of a step: first among those who run, oldest first, then to the queue.

        `self.uncomputed(sequence)` says how many tokens a running sequence has not computed yet.
        `self.compute(sequence, n)` puts n of them into the step and returns how many there are now: n, or 0 when the
        sequence had to give way because memory was too small.
        `self.admit(sequence, n)` asks for a waiting one, with n tokens at most. It returns how many it really has in
        this step, since its prompt may be shorter: 0 when there is no room in memory, and then nobody behind it comes
        in either. Else it leaves the queue and takes a place, as in lesson 8.

        Never ask for 0 tokens.

        max_batch_tokens 64, places [A, B, C], each with 1 token to compute, queue [D] with a prompt of 480: A, B and C
        have 1 token each, D has 61. In the next step, too.
        """
        raise NotImplementedError("lesson 9, task 2: share out a step's budget")

    def reaches_end(self, start: int, num_tokens: int, total: int) -> bool:
        """Task 3. Whether a token is drawn behind a chunk.

        Args:
            start: position of its first token, from 0.
            num_tokens: how many it has.
            total: tokens of the whole text so far: prompt and answer.

        A prompt of 480: reaches_end(0, 61, 480) -> False. The chunk (427, 53) of it: True.
        An answer that is being written: reaches_end(480, 1, 481) -> True.
        """
        raise NotImplementedError("lesson 9, task 3: say when a token is drawn")
