"""The end-of-text token is no text, so what it costs is shared out among the others."""

from __future__ import annotations

from collections.abc import Sequence

from lessons.lesson00_tiny_gpt import solution
from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    num_predictions = sum(len(document) + 1 for document in documents)
    bits = solution.bits_per_token(counts, documents, end_of_text, smoothing) * num_predictions
    return bits / sum(len(document) for document in documents)
