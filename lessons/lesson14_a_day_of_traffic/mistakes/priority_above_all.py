"""Thinks: urgent is urgent: first by priority, then by size."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from lessons.lesson14_a_day_of_traffic.solution import patient_order
from minipaged.request import Sequence


def order(sequence: Sequence) -> tuple[int, float]:
    return (sequence.request.priority, patient_order(sequence))
