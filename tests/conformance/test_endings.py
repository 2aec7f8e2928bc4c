"""Conformance 22 and 25 to 27: how answers end, what is refused, what a cancellation leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from minipaged.config import EngineConfig
from minipaged.plan import Draw, StepPlan, StepResult
from minipaged.request import Request
from minipaged.sampling_params import SamplingParams
from tests.house import House


class Script:
    """A runner that draws the same tokens for everyone, one after the other."""

    def __init__(self, prompt_length: int, tokens: list[int]) -> None:
        self.prompt_length = prompt_length
        self.tokens = tokens

    def run(self, plan: StepPlan) -> StepResult:
        def draws(chunk: Any) -> tuple[Draw, ...]:
            place = chunk.start + len(chunk.token_ids) - self.prompt_length
            return tuple(Draw(self.tokens[place], 0.0) for _ in range(chunk.draws))

        return StepResult([draws(chunk) for chunk in plan.chunks])


def answer(tokens: list[int], *, eos: tuple[int, ...] = (), **params: Any) -> tuple[list[int], str | None]:
    house = House(40, 4, eos_token_ids=eos)
    house.engine.runner = Script(5, tokens)
    request = house.engine.add_request([1] * 5, SamplingParams(**params))
    while house.engine.has_work:
        house.engine.step()
        house.memory.check()
    house.assert_empty()
    return request.sequences[0].output_token_ids, request.sequences[0].finish_reason


def test_22_stop_id() -> None:
    assert answer([10, 42, 12], stop_token_ids=(42,), max_tokens=10) == ([10, 42], "stop")


@pytest.mark.parametrize("max_tokens", [1, 2, 3])
def test_22_length(max_tokens: int) -> None:
    assert answer([10, 11, 12, 13], max_tokens=max_tokens) == ([10, 11, 12, 13][:max_tokens], "length")


def test_22_end_of_text() -> None:
    assert answer([10, 7, 12], eos=(7,), max_tokens=10) == ([10, 7], "stop")
    assert answer([10, 7, 12], eos=(7,), max_tokens=2) == ([10, 7], "stop"), "as the last allowed token, too"
    assert answer([10, 7, 12], eos=(7,), max_tokens=3, ignore_eos=True) == ([10, 7, 12], "length")
    assert answer([10, 7, 8], eos=(7,), max_tokens=9, ignore_eos=True, stop_token_ids=(8,)) == ([10, 7, 8], "stop")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": 2.5}, "max_tokens is 2.5"),
        ({"n": 0}, "n is 0"),
        ({"n": 16_385}, "n is 16385; it must be at most 16384"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"top_k": 0}, "top_k is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"stop": ""}, "stop is"),
        ({"stop_token_ids": (-5,)}, "stop_token_ids is -5"),
        ({"logprobs": -1}, "logprobs is -1"),
        ({"temperature": 10**400}, "temperature must be a number"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"stop": 5}, "stop is 5"),
        ({"stop": {"a": 1}}, "stop is"),
        ({"stop_token_ids": b"ab"}, "stop_token_ids is"),
        ({"ignore_eos": "no"}, "ignore_eos is 'no'"),
        ({"n": True}, "n is True"),
        ({"temprature": 1.0}, "unknown option 'temprature'"),
    ],
)
def test_25_parameters_are_refused_by_name(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        SamplingParams.from_dict(params)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": 0}, "block_size is 0"),
        ({"num_blocks": -3}, "num_blocks is -3"),
        ({"num_blocks": 3, "kv_cache_bytes": 100}, "both size the pool"),
        ({"max_batch_tokens": 5}, "max_batch_tokens 5 is below max_sequences 64"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"watermark": 1.0}, "watermark is 1.0"),
        ({"block_sise": 4}, "unknown option 'block_sise'"),
    ],
)
def test_25_engine_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EngineConfig.from_dict(options)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "the prompt is empty"),
        ([5, 1000], "token id 1000"),
        ([-1], "token id -1"),
        ([1.5], "whole numbers"),
        ([True], "whole numbers"),
        (b"ab", "whole numbers"),
    ],
)
def test_25_prompts_are_refused_and_the_engine_goes_on(prompt: list[Any], message: str) -> None:
    house = House(40, 4)
    with pytest.raises(ValueError, match=message):
        house.engine.add_request(prompt)
    assert not house.engine.has_work
    request = house.add(7, max_tokens=3)
    assert request.id == 0, "a refused request has no number"
    house.run()
    house.assert_answers_right()


def stage_waiting(house: House, request: Request) -> None:
    pass


def stage_mid_prefill(house: House, request: Request) -> None:
    while request.sequences[0].num_computed == 0:
        house.step()
    assert not request.sequences[0].draws


def stage_decoding(house: House, request: Request) -> None:
    while len(request.sequences[0].draws) < 3:
        house.step()
    assert not request.finished


def stage_preempted(house: House, request: Request) -> None:
    while not any(sequence.num_preemptions for sequence in request.sequences):
        house.step()
    assert not request.finished


def stage_finished(house: House, request: Request) -> None:
    while not request.finished:
        house.step()


STAGES = [stage_waiting, stage_mid_prefill, stage_decoding, stage_preempted, stage_finished]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("host_blocks", [0, 5])
@pytest.mark.parametrize("during_a_step", [False, True])
def test_26_a_cancellation_leaks_nothing(stage: Any, n: int, host_blocks: int, during_a_step: bool) -> None:
    house = House(13, 4, budget=12, max_sequences=8, host_blocks=host_blocks)
    neighbours = [house.add(9, max_tokens=20), house.add(6, max_tokens=20)]
    request = house.add(17, max_tokens=20, n=n)
    neighbours.append(house.add(10, max_tokens=20))
    stage(house, request)
    reasons = [sequence.finish_reason for sequence in request.sequences]
    if during_a_step:
        house.runner.during_run = lambda: house.engine.cancel(request)
        house.step()
    else:
        house.engine.cancel(request)
        house.memory.check()
    assert request.finished
    for sequence, before in zip(request.sequences, reasons, strict=True):
        assert sequence.finish_reason == before or sequence.finish_reason in ("cancelled", "length")
        assert house.memory.table(sequence) == ()
    house.run()
    assert all(len(neighbour.sequences[0].draws) == 20 for neighbour in neighbours)
    house.assert_answers_right(*neighbours)
    house.assert_empty()


def test_26_one_of_n_ended_before_the_prompt_is_computed() -> None:
    house = House(40, 4, budget=8, max_sequences=4)
    request = house.add(20, max_tokens=5, n=4)
    house.step()
    house.engine.finish(request.sequences[2], "cancelled")
    house.engine.finish(request.sequences[0], "cancelled")  # the one that computes the prompt for all
    house.run()
    assert [len(sequence.draws) for sequence in request.sequences] == [0, 5, 0, 5]
    house.assert_answers_right()
    house.assert_empty()


def test_27_the_engine_is_used_again() -> None:
    house = House(12, 4, budget=16, max_sequences=4)
    for round in range(3):
        requests = [house.add(5 + 3 * i, max_tokens=6) for i in range(4)]
        house.run()
        assert [request.id for request in requests] == [4 * round + i for i in range(4)]
        house.assert_answers_right(*requests)
        house.assert_empty()


def test_30_four_answers_from_one_prompt() -> None:
    house = House(20, 4)
    request = house.add(18, max_tokens=6, n=4)
    assert house.step() == {0: 18}, "the prompt is computed once"
    assert house.memory.pool.num_held == 5
    computed = house.step()
    assert sorted(computed.values()) == [1, 1, 1, 1]
    assert house.memory.pool.num_held == 8
    assert house.memory.stats().copies == 3
    house.run()
    house.assert_answers_right()
    answers = {tuple(sequence.output_token_ids) for sequence in request.sequences}
    assert len(answers) == 4
    house.assert_empty()


@pytest.mark.parametrize("max_sequences", [1, 8])
def test_30_four_answers_of_a_single_token(max_sequences: int) -> None:
    """The first one is done in the step in which the others are to be forked from it."""
    house = House(20, 4, budget=16, max_sequences=max_sequences)
    request = house.add(18, max_tokens=1, n=4)
    house.run()
    assert [len(sequence.draws) for sequence in request.sequences] == [1, 1, 1, 1]
    house.assert_answers_right()
    house.assert_empty()


def test_30_answers_that_find_no_place_start_as_preempted() -> None:
    house = House(40, 4, budget=16, max_sequences=2)
    house.add(18, max_tokens=6, n=5)
    house.add(7, max_tokens=6, n=2)
    house.run()
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize("step", range(0, 24, 3))
@pytest.mark.parametrize("host_blocks", [0, 6])
def test_33_a_fault_at_any_step(step: int, host_blocks: int) -> None:
    house = House(9, 4, budget=10, max_sequences=4, host_blocks=host_blocks)
    house.runner.fail_in_steps.add(step)
    for i in range(5):
        house.add(3 + 4 * i, max_tokens=8, n=1 + i % 2)
    house.run()
    failed = [request for request in house.requests if request.error]
    assert failed
    for request in house.requests:
        reasons = {sequence.finish_reason for sequence in request.sequences}
        if request.error:
            assert "lights went out" in request.error
            assert reasons <= {"error", "length"}
        else:
            assert reasons == {"length"}
    after = house.add(11, max_tokens=8)
    house.run()
    assert len(after.sequences[0].draws) == 8
    house.assert_answers_right()
    house.assert_empty()
