"""Smoothing goes into the total once for each token that has been seen there."""

from __future__ import annotations

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def probability(counts: Counts, previous: int, token: int, smoothing: float) -> float:
    seen = counts[previous]
    return (seen[token] + smoothing) / (seen.total() + smoothing * max(len([t for t in seen if seen[t]]), 1))
