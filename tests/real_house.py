"""A whole engine around a real (small) model, and the comparison of its answers with the loop that has no cache."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import Any

import torch
from minipaged_kernels import reference

from minipaged.engine import Engine
from minipaged.memory.kv_manager import KVManager
from minipaged.model.gpt import GPT
from minipaged.model.kv_cache import KVCache
from minipaged.model.plain_loop import PlainAnswer, generate_plain
from minipaged.plan import StepPlan
from minipaged.request import Request
from minipaged.runner import AttentionBackend, TorchRunner
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from tests.house import manager

NEAR_TIE = 1e-4  # of the oracle's two best logits: below it, rounding may decide


class RealHouse:
    """Engine, scheduler, memory, and a runner over tensors; freed blocks hold NaN, the books are checked every step."""

    def __init__(
        self,
        model: GPT,
        num_blocks: int,
        block_size: int,
        *,
        host_blocks: int = 0,
        budget: int = 2048,
        max_sequences: int = 16,
        share_prefixes: bool = True,
        on_logits: Callable[[StepPlan, torch.Tensor], None] | None = None,
        attention: AttentionBackend = reference,
        **scheduler_options: Any,
    ) -> None:
        self.model = model
        self.memory: KVManager = manager(num_blocks, block_size, host_blocks, share_prefixes=share_prefixes)
        cache = KVCache(model.config, num_blocks, block_size, model.dtype, num_host_blocks=host_blocks)
        cache.blocks.fill_(float("nan"))
        self.runner = TorchRunner(model, cache, attention=attention, on_logits=on_logits)
        scheduler = Scheduler(
            self.memory,
            max_batch_tokens=budget,
            max_sequences=min(max_sequences, budget),
            max_positions=model.config.max_positions,
            **scheduler_options,
        )
        self.engine = Engine(scheduler, self.runner, model.config, listeners=[lambda record: self.memory.check()])

    def run(self, prompts: Items[Items[int]], params: Items[SamplingParams]) -> list[Request]:
        """Submit everything, run to the end."""
        requests = [self.engine.add_request(p, own) for p, own in zip(prompts, params, strict=True)]
        self.finish()
        return requests

    def finish(self) -> None:
        """Run to the end; nothing may be left."""
        while self.engine.has_work:
            self.engine.step()
        assert self.memory.pool.num_available == self.memory.pool.num_blocks


def plain_answer(model: GPT, request: Request, index: int = 0) -> PlainAnswer:
    """What the loop without a cache answers."""
    return generate_plain(model, request.prompt_token_ids, request.params, seed=request.seed, index=index)


def near_ties(request: Request, oracle: PlainAnswer, index: int = 0) -> int:
    """0 when the answer is the oracle's, 1 when the two part at a near-tie of the oracle's logits.

    Raises:
        AssertionError: they part elsewhere.
    """
    ours, theirs = request.sequences[index].output_token_ids, oracle.token_ids
    for position, (mine, right) in enumerate(zip(ours, theirs, strict=False)):
        if mine != right:
            margin = oracle.margins[position]
            assert margin < NEAR_TIE, f"token {position} is {mine}, not {right}; the logits were {margin} apart"
            return 1
    assert len(ours) == len(theirs)
    assert request.sequences[index].finish_reason == oracle.finish_reason
    return 0


Logits = dict[tuple[int, int, int], torch.Tensor]  # (request, index, position) -> (vocab)


class Listening(RealHouse):
    """A house that keeps every row of logits, by request, sequence and position."""

    def __init__(self, model: GPT, num_blocks: int, block_size: int, **options: object) -> None:
        self.logits: Logits = {}
        self.owners: dict[int, tuple[int, int]] = {}  # sequence id -> (request, index)
        super().__init__(model, num_blocks, block_size, on_logits=self._keep, **options)  # type: ignore[arg-type]

    def submit(self, prompt: list[int], params: SamplingParams, name: int) -> Request:
        request = self.engine.add_request(prompt, params)
        self.owners.update((sequence.id, (name, sequence.index)) for sequence in request.sequences)
        return request

    def _keep(self, plan: StepPlan, logits: torch.Tensor) -> None:
        for chunk, row in zip([chunk for chunk in plan.chunks if chunk.draws], logits, strict=True):
            name, index = self.owners[chunk.sequence]
            key = (name, index, chunk.start + len(chunk.token_ids))
            assert key not in self.logits, "a token is drawn once"
            self.logits[key] = row.clone()


def run_together(house: Listening, jobs: list) -> list[Request]:  # type: ignore[type-arg]
    """All of them, as they arrive and are cancelled."""
    requests: dict[int, Request] = {}
    step = 0
    while len(requests) < len(jobs) or house.engine.has_work:
        for name, (prompt, params, arrival, cancelled) in enumerate(jobs):
            if arrival == step:
                requests[name] = house.submit(prompt, params, name)
            if cancelled is not None and cancelled + arrival == step:
                house.engine.cancel(requests[name])
        if house.engine.has_work:
            house.engine.step()
        step += 1
    return [requests[name] for name in range(len(jobs))]
