"""Engine: one step is schedule → run → commit. Everything else is somebody else's.

The parts are handed in, so a lesson's naive scheduler or a simulated runner takes the place of ours without a patch.
The engine knows tokens and no text. Of the memory it asks three counts, for the record; tensors it does not see.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from operator import index
from typing import Protocol

from minipaged.config import ModelConfig
from minipaged.interrupts import Uninterrupted
from minipaged.plan import Chunk, Sampling, StepPlan, StepResult
from minipaged.request import Request, Sequence, Status
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.trace import ChunkRecord, Listener, StepRecord

logger = logging.getLogger("minipaged")


class Runner(Protocol):
    """Carries plans out. `TorchRunner` computes; `SimulatedRunner` and `ScriptedRunner` pretend to."""

    def run(self, plan: StepPlan) -> StepResult:
        """Carry out the plan's memory operations in their order, then one forward pass over its chunks.

        What it raises ends the requests of the step with `error`.

        Args:
            plan: `num_executed_ops` in it is to be counted up as the operations are done, since should the step fail,
                the rest of them is still to be done by the next one.

        Returns:
            For each chunk, in order, `chunk.draws` draws.
        """
        ...


class Engine:
    """Runs requests together, a step at a time.

    Args:
        scheduler: decides what a step computes.
        runner: computes it.
        model: what a request is checked against: vocabulary, context, end-of-text tokens.
        seed: noise of the requests that bring no seed.
        clock: seconds, for the records.
        listeners: called with the `StepRecord` of every step.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        model: ModelConfig,
        *,
        seed: int = 0,
        clock: Callable[[], float] = time.perf_counter,
        listeners: Items[Listener] = (),
    ) -> None:
        self.scheduler = scheduler
        self.runner = runner
        self.model = model
        self.seed = seed
        self.clock = clock
        self.listeners = list(listeners)
        self.num_requests = 0  # added so far; the next one's id
        self._num_sequences = 0

    @property
    def has_work(self) -> bool:
        """Whether a sequence runs or waits."""
        return self.scheduler.has_work

    def add_request(
        self,
        prompt_token_ids: Items[int],
        params: SamplingParams | None = None,
        *,
        priority: int = 0,
        cache_salt: str | None = None,
    ) -> Request:
        """Queue a prompt; its answers are written by the steps that follow.

        Args:
            prompt_token_ids: at least one token, each in the model's vocabulary.
            params: how to sample; the defaults when None.
            priority: see `minipaged.order.by_priority`.
            cache_salt: prefixes are shared only among requests of the same salt.

        Returns:
            The request; its `sequences` grow as the steps write them.

        Raises:
            ValueError: a request that makes no sense or could never fit. Nothing has changed then.
        """
        params = SamplingParams() if params is None else params
        if not isinstance(params, SamplingParams):
            raise ValueError(f"sampling parameters are a {type(params).__name__}; they must be SamplingParams")
        if not (cache_salt is None or isinstance(cache_salt, str)):
            raise ValueError(f"cache_salt is {cache_salt!r}; it must be a string")
        if not isinstance(priority, int):
            raise ValueError(f"priority is {priority!r}; it must be a whole number")
        prompt = self._checked_prompt(prompt_token_ids)
        request_id = self.num_requests
        stop = set(params.stop_token_ids) | (set() if params.ignore_eos else set(self.model.eos_token_ids))
        seed = params.seed if params.seed is not None else (self.seed << 32) + request_id
        request = Request(request_id, prompt, params, seed, frozenset(stop), priority, cache_salt)
        self.scheduler.require_fit(request)  # before n sequences are made for nothing
        for i in range(params.n):
            sampling = Sampling(params.temperature, params.top_k, params.top_p, params.logprobs or 0, seed, i)
            request.sequences.append(Sequence(self._num_sequences + i, request, i, list(prompt), sampling))
        self.scheduler.add(request)  # refuses before anything is queued
        self.num_requests += 1
        self._num_sequences += params.n
        return request

    def cancel(self, request: Request) -> None:
        """End a request's unfinished sequences with `cancelled`; during a step, at the end of that step."""
        for sequence in request.sequences:
            self.finish(sequence, "cancelled")

    def finish(self, sequence: Sequence, reason: str) -> None:
        """End one sequence from outside, as a stop string does. One that has ended already stays as it is.

        Args:
            sequence: of a request of this engine.
            reason: its `finish_reason`: "stop" or "cancelled".
        """
        self.scheduler.finish(sequence, reason)

    def step(self) -> list[Sequence]:
        """Run one step.

        A forward pass that raises ends the requests that were in it with `error`; the engine goes on.

        Returns:
            Each sequence that got a token or ended, once: the plan's in its order, then those that were cancelled
            meanwhile.
        """
        started = self.clock()
        error: str | None = None
        with Uninterrupted() as interrupts:  # the books are never left in the middle of an entry
            plan = self.scheduler.schedule()
            memory = self.scheduler.memory
            held_slots, live_slots = memory.held_slots, memory.live_slots
            planned = self.scheduler.planned
            chunks = tuple(_chunk_record(chunk, planned[chunk.sequence]) for chunk in plan.chunks)
            num_done = len(plan.memory_ops)
            drawn: tuple[tuple[int, int], ...] = ()
            try:
                with interrupts.allowed():
                    result = self.runner.run(plan)
                _require_fit(plan, result)
            except BaseException as exception:
                error = _one_line(exception)
                changed = self.scheduler.fail(plan, error)
                num_done = plan.num_executed_ops  # the others are in front of the next step's
                if not isinstance(exception, Exception):
                    raise  # Ctrl-C and the like: the books are in order, the user decides
                logger.warning("step %d failed, its requests end with an error: %s", plan.step, error)
            else:
                drawn = _drawn(plan, result, planned)
                changed = self.scheduler.commit(plan, result)
        record = StepRecord(
            step=plan.step,
            started_seconds=started,
            seconds=self.clock() - started,
            chunks=chunks,
            events=tuple(self.scheduler.take_events()),
            num_running=self.scheduler.num_running,
            num_waiting=self.scheduler.num_waiting,
            total_slots=self.scheduler.memory.total_slots,
            held_slots=held_slots,
            live_slots=live_slots,
            operations=tuple(plan.memory_ops[:num_done]),
            drawn=drawn,
            waiting_cause=self.scheduler.waiting_cause,
            error=error,
        )
        for listener in self.listeners:
            listener(record)
        return changed

    def _checked_prompt(self, prompt_token_ids: Items[int]) -> tuple[int, ...]:
        last = self.model.vocab_size - 1
        try:
            kinds = set(map(type, prompt_token_ids))
            if isinstance(prompt_token_ids, (str, bytes)) or bool in kinds:
                raise TypeError(f"it is {prompt_token_ids!r}")
            # An int, or what numpy and torch have.
            prompt = tuple(prompt_token_ids if kinds == {int} else map(index, prompt_token_ids))
        except TypeError as error:
            raise ValueError(f"the prompt must be token ids, whole numbers from 0 to {last}: {error}") from None
        if not prompt:
            raise ValueError("the prompt is empty; it must have at least one token")
        if min(prompt) < 0 or max(prompt) > last:
            wrong = next(token_id for token_id in prompt if not 0 <= token_id <= last)
            raise ValueError(f"the prompt has token id {wrong}; the model's vocabulary is 0 to {last}")
        return prompt


def _require_fit(plan: StepPlan, result: StepResult) -> None:
    """Refuse a runner's result that does not answer the plan, before anything is booked."""
    found, expected = [len(draws) for draws in result.draws], [chunk.draws for chunk in plan.chunks]
    if found != expected:
        raise ValueError(f"the runner drew {found} tokens for the plan's chunks; it should have drawn {expected}")


def _drawn(plan: StepPlan, result: StepResult, planned: Mapping[int, Sequence]) -> tuple[tuple[int, int], ...]:
    """Who gets which token. Taken before the commit: an answer that has been ended already gets none."""
    drawn = []
    for chunk, draws in zip(plan.chunks, result.draws, strict=True):
        if len(draws) == 1:
            drawn.append((chunk.sequence, draws[0].token_id))
        elif draws:  # its request's answers part here
            lead = planned[chunk.sequence]
            for sequence, draw in zip(lead.request.sequences[lead.index :], draws, strict=True):
                if sequence.status is not Status.FINISHED:
                    drawn.append((sequence.id, draw.token_id))
    return tuple(drawn)


def _one_line(exception: BaseException) -> str:
    try:
        return " ".join(f"{type(exception).__name__}: {exception}".split())
    except Exception:  # an exception whose text cannot be had
        return type(exception).__name__


def _chunk_record(chunk: Chunk, sequence: Sequence) -> ChunkRecord:
    """Taken before the step is run, while the sequence still stands where the plan found it."""
    num_tokens = len(chunk.token_ids)
    computed_before = sequence.peak_computed - chunk.start
    num_recomputed = 0 if computed_before <= 0 else min(computed_before, num_tokens)
    kind = "recompute" if num_recomputed else "decode" if sequence.draws else "prefill"
    return ChunkRecord(
        chunk.sequence, sequence.request.id, chunk.start, num_tokens, num_recomputed, kind, chunk.block_table
    )
