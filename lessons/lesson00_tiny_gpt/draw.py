"""`Draw`: seeded random choices that keep account of how probable they were.

A generator of text that makes all its choices through one `Draw` knows, when it is done, with which probability it
would have written exactly this text. Summed over documents, that is the entropy of the corpus: the floor under any
model's loss.

It knows nothing of text. Only `random.random()` is asked for numbers, because its sequence for a given seed is promised
to stay the same across Python versions and platforms; `random.choice` and its kin are not promised that.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices from a seed, and the log2 of the probability of all of them together.

    Attributes:
        log2_probability: The sum of log2 P over the choices made since the last `reset`; 0 before the first.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.log2_probability = 0.0

    def reset(self) -> None:
        """Forgets the account, not the place in the random sequence."""
        self.log2_probability = 0.0

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Returns one item, chosen with probability weight ÷ sum of weights, and enters it in the account.

        Raises:
            ValueError: If there are no items, the lengths differ, or a weight is not positive.
        """
        if not items or len(items) != len(weights) or min(weights) <= 0:
            raise ValueError(
                f"Draw.weighted: got {len(items)} items and weights {weights!r}; expected as many positive weights"
            )
        total = sum(weights)
        index = self._pick([weight / total for weight in weights])
        self.log2_probability += math.log2(weights[index] / total)
        return items[index]

    def choice(self, items: Sequence[T]) -> T:
        """Returns one item, each with the same probability."""
        return self.weighted(items, [1.0] * len(items))

    def chance(self, probability: float) -> bool:
        """Returns True with the given probability. Certainty costs no draw."""
        if probability <= 0.0 or probability >= 1.0:
            return probability >= 1.0
        return self.weighted((True, False), (probability, 1.0 - probability))

    def _pick(self, probabilities: Sequence[float]) -> int:
        remaining = self._random.random()
        for index, probability in enumerate(probabilities):
            remaining -= probability
            if remaining < 0.0:
                return index
        return len(probabilities) - 1  # rounding may leave a remainder of 1e-17


class EveryDraw(Draw):
    """Goes through every possible series of choices, one series per `for` round; for small generators only.

    Example:
        >>> every = EveryDraw()
        >>> [(every.choice("ab"), every.chance(0.25)) for _ in every.rounds()]
        [('a', True), ('a', False), ('b', True), ('b', False)]
    """

    def __init__(self) -> None:
        super().__init__(seed=0)
        self._path: list[int] = []  # the branch taken at each choice of this round
        self._widths: list[int] = []  # how many branches that choice had
        self._depth = 0

    def rounds(self) -> Iterator[None]:
        """Yields once per series of choices; make the choices inside the loop's body."""
        self._path = []
        while True:
            self.reset()
            self._widths, self._depth = [], 0
            yield
            while self._path and self._path[-1] + 1 == self._widths[len(self._path) - 1]:
                self._path.pop()  # the last choice's branches are used up: go back to the one before it
            if not self._path:
                return
            self._path[-1] += 1

    def _pick(self, probabilities: Sequence[float]) -> int:
        if self._depth == len(self._path):
            self._path.append(0)
        self._widths.append(len(probabilities))
        self._depth += 1
        return self._path[self._depth - 1]
