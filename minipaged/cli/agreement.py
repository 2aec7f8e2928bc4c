"""Agreement: whether two ways of computing wrote the same answers, and whether a parting is one that rounding explains.

Two ways sum in different orders, so where the two best logits all but tie they may take different tokens, and go on
differently from there. The plain loop knows how close each decision was; all other partings are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

NEAR_TIE = 1e-4  # best logit minus second best below which rounding may decide


class Oracle(Protocol):
    """What is asked of the plain loop's answer."""

    margins: list[float]

    @property
    def token_ids(self) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many answers are identical, parted at a near-tie, or are different for no such reason."""

    identical: int
    near_ties: int
    different: int

    @classmethod
    def of(cls, oracle: Sequence[Oracle], answers: Iterable[Sequence[int]]) -> Agreement:
        """Compares answers, given as token ids, with the plain loop's."""
        counts = {"identical": 0, "near_ties": 0, "different": 0}
        for right, answer in zip(oracle, answers, strict=True):
            place = first_difference(right.token_ids, answer)
            if place is None:
                counts["identical"] += 1
            elif place < len(right.margins) and right.margins[place] < NEAR_TIE:
                counts["near_ties"] += 1
            else:
                counts["different"] += 1
        return cls(**counts)


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place where two answers differ, the end of the shorter one included; None when they are equal."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))
