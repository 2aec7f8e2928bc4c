"""A whole engine without a model, for tests of the bookkeeping: its books are checked at every step.

Answers come from `SimulatedRunner`, which reads each context back through its block table; `simulated_answer` is the
oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.plan import Sampling, StepPlan, StepResult
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, simulated_answer

VOCABULARY = 1000


class RecordingRunner(SimulatedRunner):
    """Keeps the plans, and fails in the steps that it is told to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plans: list[StepPlan] = []
        self.fail_in_steps: set[int] = set()  # after everything was computed
        self.fail_after_ops: dict[int, int] = {}  # step -> memory operations that are still carried out

        self.during_run: Callable[[], None] | None = None  # called once, in the middle of the next step

    def run(self, plan: StepPlan) -> StepResult:
        self.plans.append(plan)
        if self.during_run is not None:
            during_run, self.during_run = self.during_run, None
            during_run()
        if plan.step in self.fail_after_ops:
            executed = self.fail_after_ops[plan.step]
            super().run(StepPlan(plan.step, [], plan.memory_ops[:executed]))
            plan.num_executed_ops = min(executed, len(plan.memory_ops))
            raise RuntimeError(f"the lights went out after {executed} operations")
        result = super().run(plan)
        if plan.step in self.fail_in_steps:
            raise RuntimeError("the lights went out")
        return result


class House:
    """Engine, scheduler, memory and simulated runner, with the defaults of the conformance scenarios."""

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        budget: int = 2048,
        max_sequences: int | None = None,
        max_positions: int = 100_000,
        eos_token_ids: tuple[int, ...] = (),
        watermark_blocks: int = 0,
        host_blocks: int = 0,
        share_prefixes: bool = True,
        memory: Any = None,  # of another kind, over as many slots
        **scheduler_options: Any,
    ) -> None:
        self.memory = memory or manager(num_blocks, block_size, host_blocks, share_prefixes=share_prefixes)
        self.runner = RecordingRunner(num_blocks, block_size, VOCABULARY, host_blocks)
        self.scheduler = Scheduler(
            self.memory,
            max_batch_tokens=budget,
            max_sequences=min(64, budget) if max_sequences is None else max_sequences,
            max_positions=max_positions,
            watermark_slots=watermark_blocks * block_size,
            **scheduler_options,
        )
        model = ModelConfig(VOCABULARY, max_positions, 1, 1, 1, 1, 1, 1, eos_token_ids=eos_token_ids)
        self.engine = Engine(self.scheduler, self.runner, model)
        self.requests: list[Request] = []

    def add(
        self, prompt: int | list[int], max_tokens: int = 1, *, cache_salt: str | None = None, **params: Any
    ) -> Request:
        """Add a prompt; a number stands for so many tokens that no other such prompt begins with."""
        if isinstance(prompt, int):
            prompt = unrelated(len(self.requests), prompt)
        request = self.engine.add_request(
            prompt, SamplingParams(max_tokens=max_tokens, **params), cache_salt=cache_salt
        )
        self.requests.append(request)
        return request

    def step(self) -> dict[int, int]:
        """Run one step; returns the tokens computed for each sequence id, and checks the books."""
        self.engine.step()
        self.memory.check()
        return {chunk.sequence: len(chunk.token_ids) for chunk in self.runner.plans[-1].chunks}

    def step_without_plan(self) -> None:
        """A step whose runner is not ours."""
        self.engine.step()
        self.memory.check()

    def run(self, max_steps: int = 10_000) -> list[dict[int, int]]:
        """Run until nothing is left to do; returns what each step computed."""
        steps = []
        while self.engine.has_work:
            steps.append(self.step())
            assert len(steps) < max_steps, "it does not come to an end"
        return steps

    def assert_answers_right(self, *requests: Request) -> None:
        """Every answer is what a run without any cache gives, and no step failed that was not told to."""
        for request in requests or self.requests:
            assert request.error is None or "the lights went out" in request.error, request.error
            for sequence in request.sequences:
                answer = sequence.output_token_ids
                assert answer == simulated_answer(
                    request.prompt_token_ids, len(answer), VOCABULARY, request.seed, sequence.index
                ), f"request {request.id}, sequence {sequence.index}"

    def assert_empty(self) -> None:
        """Nothing runs, nothing waits, every block is free or evictable."""
        assert not self.scheduler.running
        assert not self.scheduler.waiting
        assert self.memory.held_slots == 0
        self.memory.check()


def manager(num_blocks: int, block_size: int, host_blocks: int = 0, *, share_prefixes: bool = True) -> KVManager:
    """A memory manager over pools of these sizes; freed blocks are poisoned."""
    swap = SwapManager(host_blocks) if host_blocks else None
    tree = PrefixTree(block_size)
    return KVManager(BlockPool(num_blocks), tree, swap, share_prefixes=share_prefixes, poison_freed=True)


def unrelated(number: int, length: int) -> list[int]:
    """A prompt whose first token is its own."""
    return [(number + 1 + 7 * i) % VOCABULARY for i in range(length)]


def lone_sequence(tokens: list[int], id: int = 0) -> Sequence:
    """A sequence outside any engine, for tests of the memory manager alone."""
    request = Request(id, tuple(tokens), SamplingParams(), seed=0)
    sequence = Sequence(id, request, 0, list(tokens), Sampling(1.0, None, 1.0, 0, 0, 0))
    request.sequences.append(sequence)
    return sequence
