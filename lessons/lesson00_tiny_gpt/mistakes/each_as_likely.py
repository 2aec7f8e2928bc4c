"""Drawing means to take one of the tokens that have been seen there."""

from __future__ import annotations

from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def draw(counts: Counts, previous: int, u: float, smoothing: float) -> int:
    seen = sorted(token for token, count in counts[previous].items() if count) or list(range(len(counts)))
    return seen[int(u * len(seen))]
