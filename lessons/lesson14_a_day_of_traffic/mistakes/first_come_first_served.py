"""Thinks: whoever came first goes first. That is what fair means."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from minipaged.request import Sequence


def patient_order(sequence: Sequence) -> float:
    return sequence.request.id
