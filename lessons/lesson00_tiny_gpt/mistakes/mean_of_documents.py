"""The mean of the documents' means is the mean."""

from __future__ import annotations

from collections.abc import Sequence

from lessons.lesson00_tiny_gpt import solution
from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    means = [solution.bits_per_token(counts, [document], end_of_text, smoothing) for document in documents]
    return sum(means) / len(means)
