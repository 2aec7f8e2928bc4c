"""BigramTable: a language model that remembers one token. The naive part of lesson 0, and a complete one.

It knows token ids, and neither texts nor how its four functions are written: they are the exercise, and are handed in.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from types import ModuleType

from lessons.lesson00_tiny_gpt import solution

SMOOTHING = 0.001


class BigramTable:
    """Counts which token follows which, once and for all.

    Args:
        documents: token ids of each, without end-of-text tokens.
        vocab_size: there are tokens 0 … vocab_size - 1.
        end_of_text: one of them.
        smoothing: added to the count of every pair.
        code: the four functions; ours, or a learner's.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[int]],
        vocab_size: int,
        end_of_text: int,
        smoothing: float = SMOOTHING,
        code: ModuleType = solution,
    ) -> None:
        self._end_of_text = end_of_text
        self._smoothing = smoothing
        self._code = code
        self.counts: solution.Counts = code.count_pairs(documents, vocab_size, end_of_text)

    @property
    def num_pairs(self) -> int:
        """Pairs that were seen at least once: the numbers that the table consists of."""
        return sum(len(row) for row in self.counts)

    @property
    def followers_bits(self) -> float:
        """Bits per token if all that was seen behind a token were equally likely there: never less than the entropy."""
        total = sum(row.total() for row in self.counts)
        return sum(row.total() * math.log2(len(row)) for row in self.counts if row) / total

    def bits_per_token(self, documents: Sequence[Sequence[int]]) -> float:
        """The mean of -log2 P over all tokens of some documents, the end-of-text token behind each included."""
        return float(self._code.bits_per_token(self.counts, documents, self._end_of_text, self._smoothing))

    def generate(self, prompt: Sequence[int], max_tokens: int, seed: int) -> list[int]:
        """Draws tokens after a prompt, of which only the last one matters, until the end-of-text token is drawn."""
        chance = random.Random(seed)
        previous = prompt[-1]
        written: list[int] = []
        while len(written) < max_tokens:
            previous = self._code.draw(self.counts, previous, chance.random(), self._smoothing)
            if previous == self._end_of_text:
                break
            written.append(previous)
        return written
