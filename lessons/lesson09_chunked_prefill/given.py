"""What lesson 9's exercise is given: lesson 8's frame, with the budget left open.

Booking and leaving are not its concern: in the engine they come from lesson 8, the learner's or ours (`plug.py`).
"""

from __future__ import annotations

from lessons.lesson08_continuous_batching.given import GivenScheduler
from minipaged.plan import Chunk
from minipaged.request import Sequence


class GivenBudget(GivenScheduler):
    """A scheduler that does not know how many tokens to give to whom.

    Attributes:
        places, queue, max_sequences: as in lesson 8.
        max_batch_tokens: the budget: tokens in a step at most, all sequences together. It is at least max_sequences.
        max_chunk_tokens: tokens of one sequence in a step at most.
    """

    def share(self, uncomputed: int, budget: int, behind: int) -> int:
        """See the exercise."""
        raise NotImplementedError

    def reaches_end(self, start: int, num_tokens: int, total: int) -> bool:
        """See the exercise."""
        raise NotImplementedError

    def _chunk(self, sequence: Sequence, n: int) -> Chunk:
        chunk = super()._chunk(sequence, n)
        draws = self.reaches_end(chunk.start, n, len(sequence.tokens))
        chunk.draws = max(chunk.draws, 1) if draws else 0  # more than 1 where a request's answers part (lesson 11)
        return chunk
