"""A document's pairs are the pairs in it; at its last token there is nothing to count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def count_pairs(documents: Sequence[Sequence[int]], vocab_size: int, end_of_text: int) -> Counts:
    counts: Counts = [Counter() for _ in range(vocab_size)]
    for document in documents:
        for previous, token in zip([end_of_text, *document], document, strict=False):
            counts[previous][token] += 1
    return counts
