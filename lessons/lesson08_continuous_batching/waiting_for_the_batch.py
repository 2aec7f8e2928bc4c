"""Static batching as a scheduler's rule: nobody comes in until the last of the batch has ended. The naive way.

It is lesson 3's batch behind the interface of the real scheduler, and a fair one: on paged memory nothing is padded,
and who has ended computes no more rows. What is left of the waste is the waiting: the place stays empty.
"""

from __future__ import annotations

from lessons.lesson08_continuous_batching.solution import Scheduler
from minipaged.request import Sequence


class WaitingForTheBatch(Scheduler):
    """Admits a whole batch when nobody runs any more, and nobody before."""

    def fill(self) -> None:
        """Whoever has a place goes on; the door opens when all places are empty."""
        is_over = not self.places
        for sequence in self.places:
            self.compute(sequence)
        while self.queue and len(self.places) < self.max_sequences:
            sequence = self.queue[0]
            if not (is_over or _belongs_to_the_batch(sequence)) or not self.admit(sequence):
                break
            self.queue.pop(0)
            self.places.append(sequence)


def _belongs_to_the_batch(sequence: Sequence) -> bool:
    """It was in already: it had to give way to an older member, or its request's answers parted without a place."""
    return sequence.num_preemptions > 0 or sequence.request.forked
