"""Thinks: the prompt is all that there is when a request comes."""

from lessons.lesson14_a_day_of_traffic.solution import *  # noqa: F403
from minipaged.request import Sequence


def size(sequence: Sequence) -> int:
    return sequence.num_prompt_tokens
