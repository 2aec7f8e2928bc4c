"""Average the probabilities first, then take one logarithm of the average."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts, probability


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    found = [
        probability(counts, previous, token, smoothing)
        for document in documents
        for previous, token in zip([end_of_text, *document], [*document, end_of_text], strict=True)
    ]
    return -math.log2(sum(found) / len(found))
