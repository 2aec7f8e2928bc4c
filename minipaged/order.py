"""Order: who goes first. A policy is a function of a sequence; the least value goes first, and ties go by age.

The scheduler asks once, when a sequence arrives, so a rank never changes. A policy knows what its user asked for, and
neither memory nor who else is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipaged.request import Sequence

Order = Callable[[Sequence], Any]


def first_come_first_served(sequence: Sequence) -> int:
    """The order of arrival."""
    return 0  # ties are broken by age


def shortest_first(sequence: Sequence) -> int:
    """Fewest tokens that it may have in the end: prompt and max_tokens."""
    return sequence.num_prompt_tokens + sequence.request.params.max_tokens


def by_priority(sequence: Sequence) -> int:
    """Lowest `Request.priority` first."""
    return sequence.request.priority
