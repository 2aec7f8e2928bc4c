"""Documents lie one behind the other, so each one's first token follows the last one's last."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def count_pairs(documents: Sequence[Sequence[int]], vocab_size: int, end_of_text: int) -> Counts:
    counts: Counts = [Counter() for _ in range(vocab_size)]
    text = [end_of_text, *(token for document in documents for token in document), end_of_text]
    for previous, token in itertools.pairwise(text):
        counts[previous][token] += 1
    return counts
