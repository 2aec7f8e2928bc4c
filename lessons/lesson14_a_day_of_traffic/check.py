"""Checks of lesson 14's exercise. Two requests at a time first, by hand; then a rush hour on the real scheduler.

The rush hour is seeded and its time is virtual: nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

from lessons.lesson14_a_day_of_traffic.experiment import order_row, rush, serve_logged
from lessons.lesson14_a_day_of_traffic.figures import OrderRow
from lessons.lesson14_a_day_of_traffic.solution import LEVEL_TOKENS
from lessons.runner.checks import Wrong, expect
from minipaged.order import Order, first_come_first_served
from minipaged.plan import Sampling
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams
from minipaged.serving.policy import PAGED, Policy

MISCONCEPTIONS = {
    "knows_the_answer": "How long the answer will be, nobody knows when a request comes: nothing of it is written yet, "
    "and the order is asked then, once. What is known is the prompt, and the most that the user allows.",
    "prompt_only": "A short question can have a long answer. A request takes the prompt's slots and the answer's, and "
    "its time goes into the answer: one step for each token. max_tokens must be in it.",
    "limit_only": "The prompt takes slots and work, too. Two users who allow 64 tokens are not alike if one of them "
    "sends a book along.",
    "drawn_by_lot": "An order that says something else each time it is asked is a lottery. In the mean nobody gains by "
    "it, and whoever draws badly waits as long as under the worst of orders.",
    "last_come_first_served": "Whoever came last goes first: then in a rush everybody is overtaken by all who come "
    "later, and those who have waited longest wait longest still. Between equals, age decides.",
    "gains_backwards": "The gain has the wrong sign. A newcomer must stand further back than one of the same size that "
    "has waited, so what is added grows with the request's number.",
    "longest_first": "Lower goes first. As it is, the long ones go first, so many short ones wait for one long one; "
    "the other way round, one long one waits a little for many.",
    "first_come_first_served": "First come first served is fair, and it is what must be beaten. Whoever wants five "
    "tokens waits for all who want a thousand and came a moment before, and that is where its 99th percentile is from.",
    "gains_too_much": "So large a gain outweighs what a short request saves, and what is left is the order of arrival. "
    "In a rush dozens come between two requests: compare the gain of them all with the sizes, which are tens to "
    "hundreds of tokens.",
    "shortest_without_patience": "Shortest first starves the long ones: as long as short requests keep coming, a long "
    "one is always behind them. Nobody may wait for ever, so those who wait must gain on those who come.",
    "gains_too_little": "They who wait do gain, but too slowly: so many later requests go before a long one that it "
    "comes to the same as starving.",
    "priority_reversed": "A lower number is more urgent, as a lower value of the order goes first: 0 before 1. The "
    "levels are to be added.",
    "priority_above_all": "An urgent request that goes before all others, however long they have waited, starves them "
    "as surely as a short one does. A level counts for so many tokens, and no more.",
}
NOT_ABOVE = 0.5  # of first come first served: the 99th percentile of the normalised latency
NOT_LONGER = 1.5  # of first come first served: the longest time in which somebody got nothing
MOST_OVERTAKING = 1000


def task_1(exercise: ModuleType) -> None:
    """size"""
    size = exercise.size
    why = {25: "knows_the_answer", 20: "prompt_only", 64: "limit_only"}
    running = _sequence(20, 64, written=5)
    got = size(running)
    expect(
        "prompt of 20 tokens, max_tokens 64, 5 tokens written by now: size", got, 84,
        because=MISCONCEPTIONS.get(why.get(_key(got), ""), ""),
    )  # fmt: skip
    for prompt, limit in ((20, 64), (1, 1), (1024, 1024)):
        expect(f"prompt of {prompt} tokens, max_tokens {limit}: size", size(_sequence(prompt, limit)), prompt + limit)


def task_2(exercise: ModuleType) -> None:
    """patient_order"""
    order = exercise.patient_order
    one = _sequence(20, 64, number=3)
    _require_number("patient_order of a request of 84 tokens", order(one))
    said, again = ([order(_sequence(20, 64, number=number)) for number in range(3)] for _ in "12")
    expect(
        "patient_order of the first 3 requests, 84 tokens each, asked a second time", again, said,
        because=MISCONCEPTIONS["drawn_by_lot"],
    )  # fmt: skip

    looks_at_size = order(_sequence(20, 64)) != order(_sequence(500, 500))
    why = "gains_backwards" if looks_at_size else "last_come_first_served"
    _expect_first(
        "two requests of 84 tokens, number 3 and number 7", order, one, _sequence(20, 64, number=7), "the older",
        "the newer", why,
    )  # fmt: skip
    _expect_first(
        "84 tokens come, and 1000 tokens come next", order, _sequence(20, 64), _sequence(500, 500, number=1),
        "84 tokens", "1000 tokens", "longest_first",
    )  # fmt: skip
    prefers_short = order(_sequence(500, 500)) > order(_sequence(20, 64))
    _expect_first(
        "1000 tokens come, and 84 tokens come next", order, _sequence(20, 64, number=1), _sequence(500, 500),
        "84 tokens", "1000 tokens", "gains_too_much" if prefers_short else "first_come_first_served",
    )  # fmt: skip
    for number in (0, 70_000):
        long = _sequence(1024, 1024, number=number)
        behind = number + MOST_OVERTAKING + 1
        in_the_end = _goes_first(order, long, _sequence(1, 1, number=number + 10**9))
        _expect_first(
            f"2048 tokens come as number {number}; {MOST_OVERTAKING} others come, and then 2 tokens, number {behind}",
            order, long, _sequence(1, 1, number=behind), "2048 tokens", "2 tokens",
            "gains_too_little" if in_the_end else "shortest_without_patience",
        )  # fmt: skip

    fair, yours = _in_the_rush_hour(first_come_first_served), _in_the_rush_hour(order)
    _expect_at_most(
        "a rush hour: the 99th percentile of the normalised latency, in ms a token", 1e3 * yours.p99,
        1e3 * NOT_ABOVE * fair.p99, f"{NOT_ABOVE} of first come first served", "gains_too_much",
    )  # fmt: skip
    _expect_at_most(
        "a rush hour: the longest that anybody stood still, in seconds", yours.stood_still,
        NOT_LONGER * fair.stood_still, f"{NOT_LONGER} times first come first served", "gains_too_little",
    )  # fmt: skip


def task_3(exercise: ModuleType) -> None:
    """order"""
    order = exercise.order
    urgent, calm = order(_sequence(20, 64, number=9)), order(_sequence(20, 64, number=9, priority=1))
    if isinstance(calm, (tuple, list)):
        raise Wrong("order of a request", calm, "a number", MISCONCEPTIONS["priority_above_all"])
    _require_number("order of a request with priority 0", urgent)
    _require_number("order of a request with priority 1", calm)
    between = calm - urgent
    why = "priority_reversed" if between < 0 else "priority_above_all" if between > LEVEL_TOKENS else ""
    because = MISCONCEPTIONS.get(why, "")
    what = "84 tokens, number 9: order with priority 1, less order with priority 0"
    expect(what, round(between, 6), LEVEL_TOKENS, because)
    third = order(_sequence(20, 64, number=9, priority=3))
    expect("the same with priority 3, less with priority 0", round(third - urgent, 6), 3 * LEVEL_TOKENS)
    for prompt, limit, number in ((20, 64, 9), (500, 500, 0), (1, 1, 1000)):
        sequence = _sequence(prompt, limit, number=number)
        what = f"{prompt + limit} tokens, number {number}, priority 0: order, less patient_order"
        expect(what, round(order(sequence) - exercise.patient_order(sequence), 6), 0)
    _expect_first(
        f"84 tokens with priority 1 come; {MOST_OVERTAKING} others, and then as many with priority 0", order,
        _sequence(20, 64, priority=1), _sequence(20, 64, number=MOST_OVERTAKING + 1), "priority 1", "priority 0",
        "priority_above_all",
    )  # fmt: skip


# Within --------------------------------------------------------------------------------------------------------------


def _sequence(prompt: int, limit: int, *, number: int = 0, priority: int = 0, written: int = 0) -> Sequence:
    params = SamplingParams(max_tokens=limit, temperature=0)
    request = Request(number, (2,) * prompt, params, seed=0, priority=priority)
    sequence = Sequence(number, request, 0, [2] * prompt + [1] * written, Sampling(0.0, None, 1.0, 0, 0, 0))
    request.sequences.append(sequence)
    return sequence


def _goes_first(order: Callable[[Sequence], Any], one: Sequence, other: Sequence) -> bool:
    """As the scheduler compares them: ties go by age."""
    return bool((order(one), *one.age) < (order(other), *other.age))


def _expect_first(
    what: str, order: Callable[[Sequence], Any], first: Sequence, second: Sequence, name: str, other: str, why: str
) -> None:
    got = name if _goes_first(order, first, second) else other
    if got != name:
        raise Wrong(f"{what}: who goes first", got, name, MISCONCEPTIONS[why])


def _expect_at_most(what: str, got: float, most: float, why_most: str, misconception: str) -> None:
    if got > most:
        raise Wrong(what, f"{got:.1f}", f"at most {most:.1f}, {why_most}", MISCONCEPTIONS[misconception])


def _require_number(what: str, got: object) -> None:
    if isinstance(got, bool) or not isinstance(got, (int, float)) or math.isnan(got):
        raise Wrong(what, got, "a number")


def _key(value: object) -> int:
    return value if isinstance(value, int) else -1


def _in_the_rush_hour(order: Order) -> OrderRow:
    return _fair() if order is first_come_first_served else _rush_hour(order)


@lru_cache
def _fair() -> OrderRow:
    return _rush_hour(first_come_first_served)


def _rush_hour(order: Order) -> OrderRow:
    """Everything but the order is the engine's own."""
    _, requests = rush()
    policy = Policy("check", PAGED.memory, watermark=PAGED.watermark, order=order)
    return order_row("check", serve_logged(policy, requests))
