"""The same work done four ways, and what each one cost: serial without a cache, serial with one, static batches,
continuous batching on the paged cache.

All requests are there from the start, each way gets the same token ids and sampling parameters, and the two that batch
get the same number of token slots. Measures and counts; shows nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minipaged.cli.step_meter import StepMeter, Tick
from minipaged.llm import LLM
from minipaged.model.gpt import GPT
from minipaged.model.plain_loop import PlainAnswer, generate_plain
from minipaged.model.static_batch import generate_static
from minipaged.sampling_params import SamplingParams

Begin = Callable[[str], Tick]  # told the name of a way that begins; what it returns is told how far it is


@dataclass(frozen=True, slots=True)
class Task:
    """One request, as all four ways are given it."""

    title: str  # for a person
    token_ids: tuple[int, ...]
    params: SamplingParams

    @property
    def max_slots(self) -> int:
        """Token slots that it can come to need; the last token drawn is never fed back."""
        return len(self.token_ids) + self.params.max_tokens - 1


@dataclass(frozen=True, slots=True)
class Score:
    """What one way cost. "Summed" is over all steps, one forward pass each."""

    name: str
    seconds: float
    answers: tuple[tuple[int, ...], ...]  # token ids, in the tasks' order
    steps: int
    num_computed: int  # tokens through the model, padding included
    sequence_steps: int  # answers in work, summed
    held_slots: int = 0  # token slots reserved, summed
    live_slots: int = 0  # of them, slots that hold a token somebody still needs, summed
    peak_held_slots: int = 0
    oracle: tuple[PlainAnswer, ...] = ()

    @property
    def num_generated(self) -> int:
        return sum(len(answer) for answer in self.answers)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens."""
        return self.num_generated / self.seconds

    @property
    def utilisation(self) -> float | None:
        """Slots that hold a live token ÷ slots held; None where there is no cache."""
        return self.live_slots / self.held_slots if self.held_slots else None

    @property
    def mean_batch(self) -> float:
        """Answers in work in a step, on average."""
        return self.sequence_steps / self.steps


def serial_without_cache(name: str, model: GPT, tasks: Sequence[Task], begin: Begin) -> Score:
    """One request after the other, every token by running the whole text through the model again.

    Its score alone has an `oracle`: the answers with the margins of their decisions.
    """
    answers: list[PlainAnswer] = []
    tick = begin(name)
    started_seconds = time.perf_counter()
    for task in tasks:
        answers.append(generate_plain(model, task.token_ids, task.params))
        tick(len(answers))
    num_steps = sum(len(answer.draws) for answer in answers)
    return Score(
        name=name,
        seconds=time.perf_counter() - started_seconds,
        answers=tuple(tuple(answer.token_ids) for answer in answers),
        steps=num_steps,
        num_computed=sum(answer.num_tokens_computed for answer in answers),
        sequence_steps=num_steps,
        oracle=tuple(answers),
    )


def static_batches(
    name: str, model: GPT, tasks: Sequence[Task], batch_size: int, max_slots: int, begin: Begin
) -> Score:
    """Padded batches on a contiguous cache; with `batch_size` 1, one request after the other with a cache."""
    tick = begin(name)
    started_seconds = time.perf_counter()
    result = generate_static(
        model,
        [task.token_ids for task in tasks],
        [task.params for task in tasks],
        batch_size,
        max_slots=max_slots,
        on_batch=tick,
    )
    return Score(
        name=name,
        seconds=time.perf_counter() - started_seconds,
        answers=tuple(tuple(answer.token_ids) for answer in result.answers),
        steps=result.steps,
        num_computed=result.num_tokens_computed,
        sequence_steps=result.sequence_steps,
        held_slots=result.reserved_slots,
        live_slots=result.live_slots,
        peak_held_slots=result.peak_reserved_slots,
    )


def continuous_batching(name: str, llm: LLM, tasks: Sequence[Task], begin: Begin) -> Score:
    """The engine, with all requests at once. `llm` must be fresh: what it has cached before would be a present."""
    meter = StepMeter(begin(name))
    llm.engine.listeners.append(meter)
    started_seconds = time.perf_counter()
    outputs = llm.generate([list(task.token_ids) for task in tasks], [task.params for task in tasks], progress=False)
    seconds = time.perf_counter() - started_seconds
    llm.engine.listeners.remove(meter)
    return Score(
        name=name,
        seconds=seconds,
        answers=tuple(output.outputs[0].token_ids for output in outputs),
        steps=meter.steps,
        num_computed=meter.num_computed,
        sequence_steps=meter.sequence_steps,
        held_slots=meter.held_slots,
        live_slots=meter.live_slots,
        peak_held_slots=meter.peak_held_slots,
    )
