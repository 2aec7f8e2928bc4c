"""Thinks: any gain will do, since in the end everybody comes to the front."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from lessons.lesson14_a_day_of_traffic.solution import size
from minipaged.request import Sequence


def patient_order(sequence: Sequence) -> float:
    return size(sequence) + 0.1 * sequence.request.id
