"""The engine over a real model says what the loop without any cache says, however it is squeezed.

Tokens may part only where the oracle's two best logits are closer than `NEAR_TIE`; how often is counted and asserted
to be rare.
"""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path

import pytest
import torch

from minipaged.model.loader import load_model
from minipaged.model.plain_loop import PlainAnswer
from minipaged.plan import StepPlan
from minipaged.sampling_params import SamplingParams
from tests.real_house import RealHouse, near_ties, plain_answer
from tests.tiny_models import tiny_gpt

SHARED = Path(os.environ.get("MINIPAGED_SHARED", Path(__file__).parent.parent.parent / "shared"))
MAX_TOKENS = 12
LENGTHS = (1, 3, 8, 16, 17, 31, 40, 53)  # the longest needs 53 + 12 - 1 = 64 slots


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    return tiny_gpt(seed=3, max_positions=64)


def mixed_prompts() -> list[list[int]]:
    """Different lengths; some begin alike."""
    return [[(7 * i + (0 if i < 10 else number)) % 50 for i in range(length)] for number, length in enumerate(LENGTHS)]


def mixed_params() -> list[SamplingParams]:
    """Greedy and sampled, with and without cuts."""
    kinds = [
        SamplingParams(temperature=0, max_tokens=MAX_TOKENS),
        SamplingParams(temperature=1.0, seed=5, max_tokens=MAX_TOKENS),
        SamplingParams(temperature=0.7, top_k=9, max_tokens=MAX_TOKENS),
        SamplingParams(temperature=1.3, top_p=0.8, seed=2**40, max_tokens=MAX_TOKENS),
    ]
    return [kinds[i % len(kinds)] for i in range(len(LENGTHS))]


@pytest.fixture(scope="module")
def oracle(model: torch.nn.Module) -> list[PlainAnswer]:
    house = RealHouse(model, 64, 16)
    return [plain_answer(model, request) for request in house.run(mixed_prompts(), mixed_params())]


def assert_squeezed_answers_right(model, oracle, *args, **kwargs) -> RealHouse:  # type: ignore[no-untyped-def]
    house = RealHouse(model, *args, **kwargs)
    requests = house.run(mixed_prompts(), mixed_params())
    ties = sum(near_ties(request, answer) for request, answer in zip(requests, oracle, strict=True))
    assert ties <= 1, f"{ties} of {len(requests)} answers part at a near-tie"
    return house


@pytest.mark.parametrize("num_blocks", range(4, 33))
def test_every_pool_size_that_holds_the_longest(model, oracle, num_blocks: int) -> None:  # type: ignore[no-untyped-def]
    assert_squeezed_answers_right(model, oracle, num_blocks, 16)


@pytest.mark.parametrize(("block_size", "budget"), list(product([1, 2, 7, 16, 64], [16, 33, 128, 2048])))
@pytest.mark.parametrize("room", ["tight", "middle", "roomy"])
def test_block_sizes_and_budgets(model, oracle, block_size: int, budget: int, room: str) -> None:  # type: ignore[no-untyped-def]
    least = -(-64 // block_size)
    num_blocks = {"tight": least, "middle": 2 * least + 1, "roomy": 9 * least}[room]
    house = assert_squeezed_answers_right(model, oracle, num_blocks, block_size, budget=budget)
    if room == "roomy":
        assert house.memory.stats().evictions == 0


@pytest.mark.parametrize("host_blocks", [0, 1, 3, 40])
@pytest.mark.parametrize("share_prefixes", [True, False])
def test_host_pools(model, oracle, host_blocks: int, share_prefixes: bool) -> None:  # type: ignore[no-untyped-def]
    house = assert_squeezed_answers_right(
        model, oracle, 9, 8, host_blocks=host_blocks, share_prefixes=share_prefixes, max_chunk_tokens=11
    )
    if host_blocks == 40:
        assert house.memory.stats().swaps_in > 0


def test_33_a_forward_pass_that_raises(model, oracle) -> None:  # type: ignore[no-untyped-def]
    """Fault in the middle of the network, after some layers have written their K and V."""
    house = RealHouse(model, 12, 8, host_blocks=4, budget=32)
    attend, calls = house.runner.attention.paged_attention, 0

    class Faulty:
        write_kv = staticmethod(house.runner.attention.write_kv)

        @staticmethod
        def paged_attention(*args, **kwargs):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls == 22:
                raise RuntimeError("the second layer fell over")
            return attend(*args, **kwargs)

    house.runner.attention = Faulty()  # type: ignore[assignment]
    requests = house.run(mixed_prompts(), mixed_params())
    failed = [request for request in requests if request.error]
    assert 0 < len(failed) < len(requests)
    assert all("fell over" in str(request.error) for request in failed)
    for request, answer in zip(requests, oracle, strict=True):
        if not request.error:
            near_ties(request, answer)
    again = house.run(mixed_prompts(), mixed_params())
    for request, answer in zip(again, oracle, strict=True):
        assert request.seed != 0 or near_ties(request, answer) == 0


def test_logits_of_a_squeezed_pool_are_those_of_a_roomy_one(model) -> None:  # type: ignore[no-untyped-def]
    """Conformance 31, within rounding (the reference kernel is not invariant to the batch)."""

    def collect(num_blocks: int, host_blocks: int) -> tuple[dict[tuple[int, int], torch.Tensor], int]:
        seen: dict[tuple[int, int], torch.Tensor] = {}

        def on_logits(plan: StepPlan, logits: torch.Tensor) -> None:
            drawing = [chunk for chunk in plan.chunks if chunk.draws]
            for chunk, row in zip(drawing, logits, strict=True):
                seen[chunk.sequence, chunk.start + len(chunk.token_ids)] = row.clone()

        house = RealHouse(model, num_blocks, 4, host_blocks=host_blocks, on_logits=on_logits)
        prompts = [[(i * 11 + j * (i + 1)) % 50 for j in range(30)] for i in range(10)]
        requests = house.run(prompts, [SamplingParams(temperature=0, max_tokens=30)] * 10)
        return seen, sum(request.sequences[0].num_preemptions for request in requests)

    roomy, none = collect(200, 0)
    assert none == 0
    for host_blocks in (0, 7, 200):
        squeezed, preemptions = collect(50, host_blocks)
        assert preemptions > 0
        assert squeezed.keys() == roomy.keys()
        for place, row in roomy.items():
            torch.testing.assert_close(squeezed[place], row, atol=1e-4, rtol=1e-4)


NANO_SORT = SHARED / "goldens" / "gpt-nano-sort"


@pytest.mark.skipif(not NANO_SORT.is_dir(), reason=f"{NANO_SORT} is not there")
def test_the_whole_engine_sorts_every_input() -> None:
    """gpt-nano-sort: six digits of three in, the same six sorted out; context 11, the last digit is never fed back."""
    _, model = load_model(NANO_SORT)
    assert json.loads((NANO_SORT / "config.json").read_text())["n_positions"] == 11
    inputs = [list(digits) for digits in product(range(3), repeat=6)]
    house = RealHouse(model, 60, 4, budget=256, max_sequences=32)
    requests = house.run(inputs, [SamplingParams(temperature=0, max_tokens=6)] * len(inputs))
    wrong = [r.prompt_token_ids for r in requests if r.sequences[0].output_token_ids != sorted(r.prompt_token_ids)]
    assert len(inputs) == 729
    assert wrong == []
    with pytest.raises(ValueError, match="above the 11 positions"):
        house.engine.add_request([0] * 6, SamplingParams(max_tokens=7))
