"""End to end, at random: whatever comes when, whatever is cancelled, however small the pools: every logit is the same.

On the CPU path (packed linear layers, Numba attention) a row's result depends on its own sequence only, so the logits
of a request in any company equal those of the request alone, bit for bit, in float32 and bfloat16. On the others they
are equal within rounding, and tokens part only at near-ties.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from minipaged_kernels import backends

from minipaged.model.gpt import GPT
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.packed_linear import available, pack_linears
from minipaged.sampling_params import SamplingParams
from tests.real_house import Listening, Logits, run_together
from tests.tiny_models import tiny_gpt

BITWISE = backends.unavailable("cpu", "cpu") is None and available(torch.float32)
needs_cpu_path = pytest.mark.skipif(not BITWISE, reason="the CPU path needs Numba and oneDNN's packed linear layers")


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[list[int], SamplingParams, int, int | None]]:
    """(prompt, params, arrival step, step of cancellation): some prompts begin alike."""
    jobs = []
    for number in range(draw(st.integers(1, 6))):
        family = draw(st.integers(0, 2))
        length = draw(st.integers(1, 60))
        prompt = [(7 * i + 11 * family) % 50 for i in range(length)]
        if draw(st.booleans()):
            prompt[draw(st.integers(0, length - 1))] = number
        params = SamplingParams(
            n=draw(st.sampled_from([1, 1, 1, 3])),
            temperature=draw(st.sampled_from([0.0, 0.8])),
            seed=draw(st.integers(0, 3)),
            max_tokens=draw(st.integers(1, 12)),
        )
        cancelled = draw(st.none() | st.integers(0, 12))
        jobs.append((prompt, params, draw(st.integers(0, 8)), cancelled))
    return jobs


def run_alone(model: GPT, backend: backends.Backend, jobs: list) -> tuple[Logits, list[list[list[int]]]]:  # type: ignore[type-arg]
    """Each request by itself, in a roomy pool, in one chunk."""
    logits: Logits = {}
    answers = []
    for name, (prompt, params, _, _) in enumerate(jobs):
        house = Listening(model, 80, 16, share_prefixes=False, attention=backend)
        request = house.submit(prompt, params, name)
        house.finish()
        logits |= house.logits
        answers.append([sequence.output_token_ids for sequence in request.sequences])
    return logits, answers


squeezes = st.fixed_dictionaries(
    {
        "block_size": st.sampled_from([1, 4, 5, 16, 32]),
        "spare": st.integers(0, 12),
        "host_blocks": st.sampled_from([0, 2, 9, 80]),
        "budget": st.sampled_from([8, 16, 33, 512]),
        "max_chunk_tokens": st.sampled_from([None, 3, 16]),
        "share_prefixes": st.booleans(),
    }
)


def check(model: GPT, backend: backends.Backend, jobs: list, squeeze: dict) -> None:  # type: ignore[type-arg]
    squeeze = dict(squeeze)
    block_size, spare = squeeze.pop("block_size"), squeeze.pop("spare")
    expected, answers = run_alone(model, backend, jobs)
    house = Listening(model, -(-72 // block_size) + spare, block_size, attention=backend, max_sequences=8, **squeeze)
    requests = run_together(house, jobs)
    for request, right, (_, _, _, cancelled) in zip(requests, answers, jobs, strict=True):
        for sequence, tokens in zip(request.sequences, right, strict=True):
            mine = sequence.output_token_ids
            assert mine == tokens[: len(mine)]
            assert cancelled is not None or mine == tokens
    for place, row in house.logits.items():
        assert torch.equal(row, expected[place]), (
            f"request, index, position {place}: {(row - expected[place]).abs().max()}"
        )


@needs_cpu_path
@settings(max_examples=settings().max_examples // 4)
@given(jobs=workloads(), squeeze=squeezes)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bitwise_on_a_random_model(dtype: torch.dtype, jobs: list, squeeze: dict) -> None:  # type: ignore[type-arg]
    if not available(dtype):
        pytest.skip(f"this machine does not pack {dtype} weights")
    check(MODELS[dtype], BACKEND, jobs, squeeze)


@needs_cpu_path
@settings(max_examples=settings().max_examples // 10)
@given(jobs=workloads(), squeeze=squeezes)
def test_bitwise_on_the_shipped_model(jobs: list, squeeze: dict) -> None:  # type: ignore[type-arg]
    if SHIPPED is None:
        pytest.skip("the shipped model is not there")
    check(SHIPPED, BACKEND, jobs, squeeze)


@needs_cpu_path
def _packed(dtype: torch.dtype) -> GPT:
    model = tiny_gpt(seed=2, dtype=dtype, max_positions=80)
    pack_linears(model, own_kernel=True)
    return model


def _shipped() -> GPT | None:
    try:
        folder: Path = resolve_model("tiny-gpt")
    except ValueError:
        return None
    _, model = load_model(folder)
    pack_linears(model, own_kernel=True)
    return model


if BITWISE:
    BACKEND = backends.choose("cpu", "cpu")
    MODELS = {dtype: _packed(dtype) for dtype in (torch.float32, torch.bfloat16) if available(dtype)}
    SHIPPED = _shipped()
