"""log is log; the unit of a loss is a matter of taste."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lessons.lesson00_tiny_gpt import solution
from lessons.lesson00_tiny_gpt.solution import *  # noqa: F403
from lessons.lesson00_tiny_gpt.solution import Counts


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    return solution.bits_per_token(counts, documents, end_of_text, smoothing) * math.log(2)
