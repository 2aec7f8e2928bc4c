"""The simulator and the real engine decide alike: given a real run's tokens and arrivals, every plan is the same."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from minipaged.cost_model import preset
from minipaged.engine import Engine
from minipaged.order import ORDERS
from minipaged.plan import StepPlan, StepResult
from minipaged.prefill_first import PrefillFirst
from minipaged.request import Request
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.scripted_runner import ScriptedRunner, recital
from minipaged.static_batches import StaticBatches
from minipaged.timed_runner import TimedRunner
from minipaged.virtual_clock import VirtualClock
from tests.house import manager
from tests.real_house import RealHouse
from tests.tiny_models import tiny_gpt

EOS = 7
Job = tuple[int, list[int], SamplingParams, int]  # step before which it comes, prompt, params, priority


class Keeping:
    """A runner that keeps the plans."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.plans: list[StepPlan] = []

    def run(self, plan: StepPlan) -> StepResult:
        self.plans.append(plan)
        result: StepResult = self.runner.run(plan)
        return result


def jobs(seed: int, count: int = 14) -> list[Job]:
    """Some begin alike, some have several answers, some end by the model's own end-of-text."""
    noise = Random(seed)
    beginning = [noise.randrange(8, 50) for _ in range(11)]
    made = []
    for number in range(count):
        own = [noise.randrange(8, 50) for _ in range(noise.randrange(1, 20))]
        prompt = beginning[: noise.choice((0, 5, 8, 11))] + own
        params = SamplingParams(
            n=noise.choice((1, 1, 3)), max_tokens=noise.randrange(1, 20), temperature=1.0, seed=number
        )
        made.append((noise.randrange(25), prompt, params, noise.randrange(3)))
    return sorted(made, key=lambda job: job[0])


def run(engine: Engine, work: list[Job]) -> list[Request]:
    """Everything, as it comes; a step without work is an idle one."""
    requests: list[Request] = []
    step = 0
    while len(requests) < len(work) or engine.has_work:
        for _, prompt, params, priority in [job for job in work if job[0] == step]:
            requests.append(engine.add_request(prompt, params, priority=priority))
        engine.step()
        step += 1
    return requests


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("make", "blocks", "host_blocks", "share"),
    [
        (Scheduler, 15, 0, True),
        (Scheduler, 15, 6, True),
        (Scheduler, 15, 0, False),
        (PrefillFirst, 15, 6, True),
        (StaticBatches, 40, 0, True),
    ],
)
def test_every_plan_is_the_same(make: type[Scheduler], blocks: int, host_blocks: int, share: bool, order: str) -> None:
    work = jobs(seed=len(order) + blocks + host_blocks)
    options: dict[str, Any] = {
        "max_batch_tokens": 12, "max_sequences": 6, "max_chunk_tokens": 7, "max_positions": 64, "watermark_slots": 4,
        "order": ORDERS[order],
    }  # fmt: skip
    house = RealHouse(
        tiny_gpt(eos_token_ids=(EOS,)), blocks, 4, host_blocks=host_blocks, share_prefixes=share, budget=12
    )
    real_runner = Keeping(house.runner)
    real = Engine(make(house.memory, **options), real_runner, house.model.config)
    answered = run(real, work)
    tokens = {sequence.id: sequence.tokens for request in answered for sequence in request.sequences}

    clock = VirtualClock()
    memory = manager(blocks, 4, host_blocks, share_prefixes=share)
    timed = TimedRunner(ScriptedRunner(recital(tokens)), preset("laptop-gpt2"), clock, 4)
    simulated_runner = Keeping(timed)
    simulated = Engine(make(memory, **options), simulated_runner, house.model.config, clock=clock)
    told = run(simulated, work)

    assert simulated_runner.plans == real_runner.plans
    assert len(real_runner.plans) > 30 and clock.now > 0
    for one, other in zip(answered, told, strict=True):
        for real_sequence, simulated_sequence in zip(one.sequences, other.sequences, strict=True):
            assert real_sequence.tokens == simulated_sequence.tokens
            assert real_sequence.finish_reason == simulated_sequence.finish_reason
            assert real_sequence.num_preemptions == simulated_sequence.num_preemptions
    assert memory.stats() == house.memory.stats()
    reasons = Counter(sequence.finish_reason for request in answered for sequence in request.sequences)
    assert reasons["length"] and set(reasons) <= {"length", "stop"}
    if make is not StaticBatches:
        assert any(sequence.num_preemptions for request in answered for sequence in request.sequences)
    if host_blocks:
        assert memory.stats().swaps_in, "what was swapped out came back"
    assert memory.stats().copies, "answers parted inside a block"


def test_a_difference_would_be_seen() -> None:
    """One token told wrongly is enough."""
    house = RealHouse(tiny_gpt(), 15, 4)
    runner = Keeping(house.runner)
    work = jobs(seed=1, count=4)
    answered = run(Engine(Scheduler(house.memory), runner, house.model.config), work)
    tokens = {sequence.id: list(sequence.tokens) for request in answered for sequence in request.sequences}
    longest = max(answered, key=lambda request: len(request.sequences[0].output_token_ids)).sequences[0]
    tokens[longest.id][longest.num_prompt_tokens] += 1
    wrong = Keeping(ScriptedRunner(recital(tokens)))
    run(Engine(Scheduler(manager(15, 4)), wrong, house.model.config), work)
    assert wrong.plans != runner.plans
