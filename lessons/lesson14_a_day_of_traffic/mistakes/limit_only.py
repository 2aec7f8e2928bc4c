"""Thinks: prompts are cheap: they are computed in one step."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from minipaged.request import Sequence


def size(sequence: Sequence) -> int:
    return sequence.request.params.max_tokens
