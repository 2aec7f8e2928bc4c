"""Lesson 14: who goes first. Three tasks; `python -m lessons check 14` says how you stand.

An order is a function of a sequence. The scheduler calls it once, when the request arrives; the least value goes first,
and keeps its place for good. What a function may look at:

    sequence.num_prompt_tokens              tokens of the prompt
    sequence.request.params.max_tokens      the most that the user allows for the answer
    sequence.request.id                     0 for the first request that ever came, 1 for the next, and so on
    sequence.request.priority               0 for an urgent request, 1, 2 … for such as can wait
"""

from __future__ import annotations

from minipaged.request import Sequence

LEVEL_TOKENS = 256  # what a level of priority counts for, in tokens


def size(sequence: Sequence) -> int:
    """Task 1. The most tokens that the request can come to, prompt and answer.

    A prompt of 20 tokens with max_tokens 64: 84.
    """
    raise NotImplementedError("lesson 14, task 1: say how much a request may take")


def patient_order(sequence: Sequence) -> float:
    """Task 2. Short requests before long ones, but nobody is left behind for ever.

    A request of 84 tokens that comes just after one of 1000 goes first. But with every request that comes, those that
    wait must gain on it, so that at most 1000 requests that come later can go before anybody. A size is at most 2048.

    How much they gain is for you to choose. In a rush hour on the real scheduler, compared with first come first
    served, the 99th percentile of the normalised latency must come down to a half or less, and nobody may stand still
    for more than 1.5 times as long as the one who stood longest there.

    Returns:
        Its place: lower goes first.
    """
    raise NotImplementedError("lesson 14, task 2: let short requests go first, and nobody starve")


def order(sequence: Sequence) -> float:
    """Task 3. As `patient_order`, and each level of priority puts a request as far behind as LEVEL_TOKENS more tokens.

    Two requests of the same size come together, with priorities 0 and 1: the first one's value is less by 256.
    """
    raise NotImplementedError("lesson 14, task 3: let urgent requests go first, and nobody starve")
