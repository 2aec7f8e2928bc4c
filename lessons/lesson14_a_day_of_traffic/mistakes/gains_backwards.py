"""Thinks: who waits longer has the smaller number, so it must be taken off."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from lessons.lesson14_a_day_of_traffic.solution import size
from minipaged.request import Sequence


def patient_order(sequence: Sequence) -> float:
    return size(sequence) - 8 * sequence.request.id
