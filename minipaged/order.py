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


def patient(order: Order, per_request: float) -> Order:
    """Another order, under which whoever waits moves up, so that nobody starves.

    With it, a request is overtaken by those only that come within (its value - the least one) / `per_request` requests
    after it, however many come in all.

    Args:
        order: its values are numbers.
        per_request: by how much each request stands behind the one that came before it.
    """
    return lambda sequence: order(sequence) + per_request * sequence.request.id


ORDERS: dict[str, Order] = {
    "fcfs": first_come_first_served,
    "shortest": shortest_first,
    "patient": patient(shortest_first, 10),  # each that comes later counts as 10 tokens longer
    "priority": by_priority,
}
