"""A probability is a count divided by the total, so what was never seen has probability 0."""

from __future__ import annotations

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def probability(counts: Counts, previous: int, token: int, smoothing: float) -> float:
    total = counts[previous].total()
    return counts[previous][token] / total if total else 0.0
