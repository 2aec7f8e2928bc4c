"""Reckoning: what a service can do, by arithmetic alone: how many requests fit, what a step costs, how many end in a
second. It runs nothing; the experiment says how near it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from minipaged.cost_model import CostModel
from minipaged.plan import Chunk, Sampling, StepPlan

Lengths = tuple[tuple[int, int], ...]  # (tokens of the prompt, tokens of the answer)
_GREEDY = Sampling(0.0, None, 1.0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Reckoned:
    """What the arithmetic says of one policy.

    Args:
        slots: that a request holds, at a random moment of a busy service.
        running: requests at once.
        live: of these slots, those that hold a token.
        step_seconds: what a step with so many of them costs.
        steps: of an answer; of the longest of its batch, where a batch ends with it.
        rate: requests a second.
    """

    slots: float
    running: float
    live: float
    step_seconds: float
    steps: float
    rate: float


def reckon(policy: str, lengths: Lengths, cost_model: CostModel, block_size: int) -> Reckoned:
    """What one policy can do.

    Args:
        policy: its name.
        lengths: of many requests.
        cost_model: the machine and the network.
        block_size: token slots in a block of the paged memory.
    """
    network = cost_model.network
    live = at_a_moment(lengths, lambda prompt, answer: prompt + answer / 2)
    held: dict[str, Callable[[int, int], float]] = {
        "static": lambda prompt, answer: network.max_positions,
        "reserve-max": lambda prompt, answer: network.max_positions,
        # Rounded up twice: the answer, as it is known to within a factor of two, and the region, as a buddy must be.
        "reserve-pow2": lambda prompt, answer: _power_of_two(prompt + _power_of_two(answer) - 1),
        "reserve-oracle": lambda prompt, answer: prompt + answer - 1,
        "paged": lambda prompt, answer: prompt + answer / 2 + block_size / 2,
    }
    slots = at_a_moment(lengths, held[policy])
    running = network.kv_slots / slots
    in_step = running
    steps = per_answer = fmean(answer for _, answer in lengths)
    if policy in ("static", "reserve-max"):  # regions of one size: there is no place for a part of one
        in_step = running = float(int(running))
    if policy == "static":
        answers = [answer for _, answer in lengths]
        size = int(running)
        longest = [max(answers[i : i + size]) for i in range(0, len(answers) - size + 1, size)]
        steps = fmean(longest)
        in_step = running * per_answer / steps  # the places of those that have ended are empty
    seconds = cost_model.cost(_typical_step(lengths, in_step, live, per_answer), block_size).seconds
    return Reckoned(slots, running, live, seconds, steps, running / (steps * seconds))


def at_a_moment(lengths: Lengths, value: Callable[[int, int], float]) -> float:
    """The mean of a value over those who are there at a random moment. Each is there as long as its answer has tokens,
    so the long ones count for more: lesson 4."""
    return sum(value(prompt, answer) * answer for prompt, answer in lengths) / sum(answer for _, answer in lengths)


def _typical_step(lengths: Lengths, running: float, live: float, steps: float) -> StepPlan:
    """Everybody decodes, and as much of a prompt is computed as must be for those who come as others go."""
    prompt_tokens = round(running * fmean(prompt for prompt, _ in lengths) / steps)
    chunks = [Chunk(i, int(live) - 1, [0], (), 1, _GREEDY) for i in range(ceil(running))]
    if prompt_tokens:
        chunks.append(Chunk(len(chunks), 0, [0] * prompt_tokens, (), 1, _GREEDY))
    return StepPlan(0, chunks, [])


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
