"""Thinks: what counts is how long the answer really is, and the sequence has its tokens."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from minipaged.request import Sequence


def size(sequence: Sequence) -> int:
    return len(sequence.tokens)
