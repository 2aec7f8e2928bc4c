"""Thinks: the more those who wait gain, the less anybody starves."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from lessons.lesson14_a_day_of_traffic.solution import size
from minipaged.request import Sequence


def patient_order(sequence: Sequence) -> float:
    return size(sequence) + 40 * sequence.request.id
