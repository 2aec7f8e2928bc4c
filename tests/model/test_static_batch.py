"""Static batches write what the plain loop writes, and count what they waste."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from minipaged.cli.agreement import Agreement
from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT
from minipaged.model.plain_loop import generate_plain
from minipaged.model.static_batch import generate_static
from minipaged.sampling_params import SamplingParams

PROMPTS = [[5, 6, 7], [1], [9] * 20, [3, 1, 4, 1, 5, 9, 2, 6], [8, 8, 8], [2, 7, 1, 8, 2, 8]]


@pytest.fixture(scope="module", params=[2, 1], ids=["each head its own K and V", "two heads share"])
def model(request: pytest.FixtureRequest) -> GPT:
    torch.manual_seed(7)
    config = ModelConfig(50, 64, 2, 2, request.param, 8, 16, 32, tie_word_embeddings=False, eos_token_ids=(49,))
    return GPT(config)


@pytest.mark.parametrize("batch_size", [1, 2, 4, 100])
@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_as_the_plain_loop(model: GPT, batch_size: int, temperature: float) -> None:
    """Random logits lie far apart, so not even a near-tie is expected; `Agreement` would count it."""
    params = [SamplingParams(max_tokens=4 + 3 * i, temperature=temperature, seed=i) for i in range(len(PROMPTS))]
    result = generate_static(model, PROMPTS, params, batch_size)
    plain = [generate_plain(model, prompt, own) for prompt, own in zip(PROMPTS, params, strict=True)]
    agreement = Agreement.of(plain, [answer.token_ids for answer in result.answers])
    assert (agreement.identical, agreement.different) == (len(PROMPTS), 0)
    assert [answer.finish_reason for answer in result.answers] == [answer.finish_reason for answer in plain]


def test_stop_tokens_end_one_member_and_not_its_batch(model: GPT) -> None:
    params = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
    free = generate_static(model, PROMPTS, params, 3)
    stop = free.answers[0].token_ids[4]
    first = free.answers[0].token_ids.index(stop)
    stopped = generate_static(model, PROMPTS, dataclasses.replace(params, stop_token_ids=(stop,)), 3)
    assert stopped.answers[0].token_ids == free.answers[0].token_ids[: first + 1]
    assert stopped.answers[0].finish_reason == "stop"
    for answer, unstopped in zip(stopped.answers, free.answers, strict=True):
        assert answer.token_ids == unstopped.token_ids[: len(answer.token_ids)]


def test_the_bill_of_a_batch_small_enough_to_check_by_hand(model: GPT) -> None:
    params = [SamplingParams(max_tokens=n, temperature=0, ignore_eos=True) for n in (4, 2)]
    result = generate_static(model, [[1, 2, 3], [4]], params, 2)
    assert (result.batches, result.steps) == (1, 4)
    # The longest member needs 3 + 4 - 1 = 6 slots, so both reserve 6.
    assert result.peak_reserved_slots == 12
    assert result.reserved_slots == 4 * 12
    # Live: (3 + 1), (4 + 2), then the second has ended: 5, 6.
    assert result.live_slots == 4 + 6 + 5 + 6
    assert result.sequence_steps == 2 + 2 + 1 + 1
    assert (result.padded_rows, result.idle_rows) == (2, 2)
    # Rows: two prompts padded to 3, then both members in each step, though the second has ended.
    assert result.num_tokens_computed == 2 * 3 + 3 * 2


def test_batches_are_as_large_as_the_slots_allow(model: GPT) -> None:
    params = SamplingParams(max_tokens=3, temperature=0, ignore_eos=True)
    answered: list[int] = []
    # Each needs its length + 2: 5, 3, 22, 10, 5, 8. Two of 5 fit 22, a third of 22 would ask for 66.
    result = generate_static(model, PROMPTS, params, 100, max_slots=22, on_batch=answered.append)
    assert answered == [2, 3, 5, 6]
    assert result.batches == 4
    assert result.peak_reserved_slots == 22


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1], []], {}, "prompt 1 is empty"),
        ([[1] * 60], {}, "needs 69 slots, above the 64 positions"),
        ([[1] * 20], {"max_slots": 28}, "needs 29 slots, above the 28 slots of a batch"),
        ([[1]], {"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_refusals_name_the_number(model: GPT, prompts: list[list[int]], options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate_static(model, prompts, SamplingParams(max_tokens=10), **({"batch_size": 2} | options))
