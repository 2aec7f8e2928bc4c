"""The engine's own orders under the exercise's names, so that the same check can be put to them."""

from __future__ import annotations

from minipaged.order import by_priority, patient, shortest_first
from minipaged.request import Sequence

LEVEL_TOKENS = 256
size = shortest_first
patient_order = patient(shortest_first, 10)


def order(sequence: Sequence) -> float:
    """The engine's two orders, added up."""
    value: float = patient_order(sequence) + LEVEL_TOKENS * by_priority(sequence)
    return value
