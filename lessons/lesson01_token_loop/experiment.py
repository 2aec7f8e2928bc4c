"""What the lesson measures: two loops over one prompt, and steps of two models against what was predicted of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import ModuleType

from lessons.lesson01_token_loop.machine import Machine, measure_machine, shortest_seconds
from lessons.lesson01_token_loop.one_step import OneStep, count, random_model, shape_only
from lessons.lesson01_token_loop.recompute_loop import AllRows
from lessons.lesson01_token_loop.shape import GPT2_124M
from lessons.lesson01_token_loop.token_loop import LastRow
from minipaged.config import ModelConfig
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.tokenizer import Tokenizer

PROMPT = "Tell me about the brain."
PREFILL_TOKENS = 100
BATCHES = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """One way to write the answer."""

    name: str
    token_ids: tuple[int, ...]
    passes: int
    rows: int
    logit_rows: int
    flops: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One step of one model: what was predicted, what was counted, and the time.

    `seconds` is None where the step was counted and not run.
    """

    model: str
    name: str
    new_tokens: int
    context: int
    predicted_flops: int
    counted_flops: int
    predicted_bytes: int
    counted_bytes: int
    kv_bytes: int
    activation_bytes: int
    compute_seconds: float
    memory_seconds: float
    limit: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """One decode step for several requests, each behind its own context: reckoned."""

    requests: int
    flops: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Writing:
    """The same answer by the naive way and by the real one.

    `cached_flops` is what the answer needs at the least: one prefill, then decodes; reckoned.
    """

    prompt: str
    prompt_tokens: int
    text: str
    loops: tuple[LoopFigures, LoopFigures]
    cached_flops: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it. Counts are the same everywhere; seconds, and the machine's two limits, are not."""

    writing: Writing
    steps: tuple[StepFigures, ...]
    batches: tuple[BatchFigures, ...]
    flops_per_second: float
    bytes_per_second: float


def write(exercise: ModuleType, *, small: bool, device: str) -> Writing:
    """tiny-gpt's answer, twice."""
    folder = resolve_model("tiny-gpt")
    config, model = load_model(folder, device=device)
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer is not None
    prompt, eos = tokenizer.encode(PROMPT), config.eos_token_ids[0]
    loops = []
    ways: tuple[tuple[str, AllRows | LastRow], ...] = (
        ("logits of all rows", AllRows(model)),
        ("logits of the last row", LastRow(model)),
    )
    for name, next_logits in ways:
        began = time.perf_counter()
        answer = exercise.generate(next_logits, prompt, max_tokens=24 if small else 200, eos=eos)
        seconds = time.perf_counter() - began
        work = next_logits.work
        loops.append(LoopFigures(name, tuple(answer), work.passes, work.rows, work.logit_rows, work.flops, seconds))
    decodes = range(len(prompt) + 1, len(prompt) + len(loops[1].token_ids))  # the context of each
    return Writing(
        prompt=PROMPT,
        prompt_tokens=len(prompt),
        text=tokenizer.decode(loops[1].token_ids).strip(),
        loops=(loops[0], loops[1]),
        cached_flops=exercise.step_flops(config, len(prompt), len(prompt), 1)
        + sum(exercise.step_flops(config, 1, context, 1) for context in decodes),
    )


def measure_steps(exercise: ModuleType, machine: Machine, small: bool, device: str) -> tuple[StepFigures, ...]:
    """A prefill and a decode, of tiny-gpt and of the 124 M shape, which is not timed if `small`."""
    _, tiny = load_model(resolve_model("tiny-gpt"), device=device)
    large = shape_only(GPT2_124M) if small else random_model(GPT2_124M, device)
    found = []
    for name, model in (("tiny-gpt", tiny), ("124 M", large)):
        for step_name, new, context in (
            ("prefill", PREFILL_TOKENS, PREFILL_TOKENS),
            ("decode", 1, PREFILL_TOKENS + 1),
        ):
            step = OneStep(model, new, context)
            counted = count(step)
            flops = exercise.step_flops(model.config, new, context, 1)
            num_bytes = exercise.step_bytes(model.config, new, context, model.dtype.itemsize)
            found.append(
                StepFigures(
                    model=name,
                    name=step_name,
                    new_tokens=new,
                    context=context,
                    predicted_flops=flops,
                    counted_flops=counted.flops,
                    predicted_bytes=num_bytes,
                    counted_bytes=counted.num_bytes,
                    kv_bytes=counted.kv_bytes,
                    activation_bytes=counted.activation_bytes,
                    compute_seconds=machine.compute_seconds(counted.flops),
                    memory_seconds=machine.memory_seconds(counted.num_bytes),
                    limit=machine.limit(counted.flops, counted.num_bytes),
                    seconds=None if model.device.type == "meta" else shortest_seconds([step.run], device, 7)[0],
                )
            )
    return tuple(found)


def share_a_step(exercise: ModuleType, config: ModelConfig, itemsize: int = 4) -> tuple[BatchFigures, ...]:
    """n requests in one decode step: each brings its own row, K and V; the weights are read once for all of them."""
    context = PREFILL_TOKENS + 1
    flops = exercise.step_flops(config, 1, context, 1)
    weights = exercise.step_bytes(config, 0, 0, itemsize)
    own = exercise.step_bytes(config, 1, context, itemsize) - weights
    return tuple(BatchFigures(n, n * flops, weights + n * own) for n in BATCHES)


def measure(exercise: ModuleType, writing: Writing, *, small: bool, device: str) -> Figures:
    """The steps, beside what has been written."""
    machine = measure_machine(device, small)
    return Figures(
        writing=writing,
        steps=measure_steps(exercise, machine, small, device),
        batches=share_a_step(exercise, GPT2_124M),
        flops_per_second=machine.flops_per_second,
        bytes_per_second=machine.bytes_per_second,
    )
