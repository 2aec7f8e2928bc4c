"""Thinks: a higher priority is a higher number."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from lessons.lesson14_a_day_of_traffic.solution import patient_order
from minipaged.request import Sequence


def order(sequence: Sequence) -> float:
    return patient_order(sequence) - 256 * sequence.request.priority
