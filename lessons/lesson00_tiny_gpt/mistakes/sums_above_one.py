"""Smoothing is added to the count; the total is the number of observations, as before."""

from __future__ import annotations

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def probability(counts: Counts, previous: int, token: int, smoothing: float) -> float:
    return (counts[previous][token] + smoothing) / max(counts[previous].total(), smoothing)
