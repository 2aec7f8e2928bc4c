"""The more text the table has counted the better, so the text in hand is counted too."""

from __future__ import annotations

from collections.abc import Sequence

from lessons.lesson00_tiny_gpt import solution
from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    for previous, row in enumerate(solution.count_pairs(documents, len(counts), end_of_text)):
        counts[previous].update(row)
    return solution.bits_per_token(counts, documents, end_of_text, smoothing)
