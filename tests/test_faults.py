"""Whatever goes wrong, and wherever: what is in the step ends with an error, the books hold, the engine goes on."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from minipaged.order import by_priority, first_come_first_served, shortest_first
from minipaged.plan import StepPlan, StepResult
from minipaged.sampling_params import SamplingParams
from minipaged.simulation import SimulatedRunner
from tests.house import House, unrelated


@pytest.mark.parametrize(
    "result",
    [None, StepResult([]), StepResult([(), ()]), "nonsense"],
    ids=["nothing", "too few", "too many", "not a result"],
)
def test_a_runner_that_answers_nonsense(result: Any) -> None:
    house = House(8, 4)
    run = house.runner.run
    request = house.add(6, max_tokens=3)
    house.runner.run = lambda plan: result  # type: ignore[method-assign]
    house.engine.step()
    assert request.error is not None
    assert "\n" not in request.error
    house.runner.run = run  # type: ignore[method-assign]
    after = house.add(6, max_tokens=3)
    house.run()
    house.assert_answers_right(after)
    house.assert_empty()


def test_an_exception_whose_text_cannot_be_had() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    house = House(8, 4)
    run = house.runner.run

    def fails(plan: StepPlan) -> StepResult:
        raise Unspeakable

    request = house.add(6, max_tokens=3)
    house.runner.run = fails  # type: ignore[method-assign]
    house.engine.step()
    assert request.error == "Unspeakable"
    house.runner.run = run  # type: ignore[method-assign]
    house.add(6, max_tokens=3)
    house.run()
    house.assert_empty()


def test_a_fault_before_the_first_memory_operation_loses_none() -> None:
    """The last plan's count of operations must not be taken for this one's."""
    house = House(2, 2, host_blocks=2)
    for prompt in ([1, 2, 3], [5, 6, 7]):
        house.add(prompt)
        house.run()
    run = house.runner.run

    def fails(plan: StepPlan) -> StepResult:
        assert plan.memory_ops
        raise RuntimeError("the lights went out")

    house.runner.run = fails  # type: ignore[method-assign]
    house.add([1, 2, 3])
    house.step_without_plan()
    house.runner.run = run  # type: ignore[method-assign]
    again = house.add([1, 2, 3])
    house.run()
    assert again.error is None
    house.assert_answers_right()


@pytest.mark.parametrize("seed", range(12))
def test_ctrl_c_at_any_moment(seed: int) -> None:
    """It ends what was being computed, or strikes between two steps; it never leaves the books half written."""
    house = House(9, 2, host_blocks=4, max_sequences=4)
    interrupted = 0
    for round in range(6):
        requests = [house.add(unrelated(number % 3, 4 + number), max_tokens=6) for number in range(4)]
        previous = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0004 * (seed + 1) + 0.0007 * round)
            while house.engine.has_work:
                house.engine.step()
            time.sleep(0.02)  # the signal comes here at the latest
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        house.memory.check()
        for request in requests:
            assert request.error is None or "KeyboardInterrupt" in request.error
    assert interrupted >= 5  # one that strikes within a finalizer is ignored by Python itself
    house.run()
    after = house.add(11, max_tokens=5)
    house.run()
    house.assert_answers_right(after)
    house.assert_empty()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_salt": ["t"]}, "cache_salt"),
        ({"cache_salt": 5}, "cache_salt"),
        ({"priority": None}, "priority"),
        ({"priority": "high"}, "priority"),
    ],
)
def test_what_a_request_brings_along_is_checked(options: dict[str, Any], message: str) -> None:
    house = House(8, 4, order=by_priority)
    house.add(5, max_tokens=3)
    with pytest.raises(ValueError, match=message):
        house.engine.add_request([5], SamplingParams(max_tokens=2), **options)
    with pytest.raises(ValueError, match="must be SamplingParams"):
        house.engine.add_request([5], {"max_tokens": 5})  # type: ignore[arg-type]
    house.add(7, max_tokens=3)
    house.run()
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize("order", [first_come_first_served, shortest_first, by_priority])
def test_every_order_policy_under_preemption(order: Any) -> None:
    house = House(7, 4, host_blocks=3, max_sequences=4, order=order)
    finished: list[int] = []
    for number in range(8):
        prompt = unrelated(number, 3 + 5 * (7 - number) % 17)
        house.requests.append(
            house.engine.add_request(prompt, SamplingParams(max_tokens=8, n=1 + number % 2), priority=-number)
        )
    while house.engine.has_work:
        house.step()
        finished += [request.id for request in house.requests if request.finished and request.id not in finished]
    assert sum(sequence.num_preemptions for request in house.requests for sequence in request.sequences) > 0
    house.assert_answers_right()
    house.assert_empty()
    if order is by_priority:
        assert finished.index(7) < finished.index(0), "the last to come had the lowest number"


def test_many_requests_and_many_answers_are_cancelled_in_no_time() -> None:
    """Counted, not timed: cancelling touches its own sequences only."""
    house = House(1000, 16)
    requests = [house.add(3, max_tokens=2) for _ in range(300)]
    many = house.add(3, max_tokens=2, n=300)
    assert house.scheduler.num_waiting == 301, "one stands for all answers of a request"
    for request in (*requests[::2], many):
        house.engine.cancel(request)
    assert house.scheduler.num_waiting == 150
    assert many.finished
    house.run()
    house.assert_answers_right()
    house.assert_empty()


def test_the_simulated_runner_sees_a_table_that_is_too_short() -> None:
    house = House(4, 2)
    house.add(5)
    plan = house.scheduler.schedule()
    plan.chunks[0].block_table = plan.chunks[0].block_table[:1]
    with pytest.raises(IndexError):
        SimulatedRunner(4, 2, 10).run(plan)
