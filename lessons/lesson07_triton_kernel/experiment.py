"""The measurements of lesson 7: kernels that count what they load, each compared with the one before. Prints nothing.

Without Triton what is counted is None, and what is reckoned is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from minipaged_kernels import reference

from lessons.lesson07_triton_kernel import counting
from lessons.lesson07_triton_kernel.counting import Cost, RaggedCost, Setting
from lessons.lesson07_triton_kernel.language import MISSING, device
from minipaged import LLM, SamplingParams
from minipaged.cli.kernel_problems import TOLERANCE, Problem, make
from minipaged.parts import Parts

PROMPT = "What is a black hole?"
RAGGED = ((1, 300), (40, 40), (1, 90))  # (new tokens, context): a decode, a prompt, a decode
RAGGED_ROWS = 16  # of one program of the engine's kernel, in float32


@dataclass(frozen=True, slots=True)
class Rung:
    """One kernel of the ladder.

    Args:
        name: "naive", "tiled", "grouped" or "split".
        cost: by arithmetic.
        counted_bytes: of K and V, as the kernel counted while it loaded them.
        counted_programs: as they counted themselves.
        difference: the largest, from the kernel before; of the first, from a gather and a softmax in float64.
    """

    name: str
    cost: Cost
    counted_bytes: int | None
    counted_programs: int | None
    difference: float | None


@dataclass(frozen=True, slots=True)
class Sharing:
    """The naive kernel with some number of KV heads for the same query heads.

    Args:
        kv_heads: that the query heads share.
        held_bytes: what the cache holds.
        read_bytes: what the kernel reads of it, by arithmetic.
        counted_bytes: what it counted.
    """

    kv_heads: int
    held_bytes: int
    read_bytes: int
    counted_bytes: int | None


@dataclass(frozen=True, slots=True)
class Ragged:
    """The engine's kernel on decodes and a prompt together.

    Args:
        rows: of one program.
        cost: by arithmetic.
        difference: the largest from a gather and a softmax in float64.
    """

    rows: int
    cost: RaggedCost
    difference: float | None


def setting(small: bool) -> Setting:
    """The decode step of the ladder."""
    return Setting(contexts=(100, 20), heads=4, kv_heads=1) if small else Setting(contexts=(300, 40))


def tolerance() -> float:
    """The largest difference that rounding explains in float32."""
    return TOLERANCE[torch.float32]


def shared_context(small: bool) -> int:
    """Keys in the sequence of `share`."""
    return 40 if small else 100


def share(small: bool) -> list[Sharing]:
    """The naive kernel on one sequence, with ever fewer KV heads."""
    found = []
    for kv_heads in (8, 2) if small else (8, 4, 2, 1):
        step = Setting(contexts=(shared_context(small),), kv_heads=kv_heads)
        counted = None
        if MISSING is None:
            from lessons.lesson07_triton_kernel.naive_kernel import naive_attention

            _, counted, _ = _run(naive_attention, _problem(step))
        found.append(Sharing(kv_heads, step.held_bytes, counting.naive(step).read_bytes, counted))
    return found


def climb(step: Setting, answer: ModuleType | None) -> list[Rung]:
    """The four kernels on the same step.

    Args:
        step: what they compute.
        answer: whose `tile_loop` and `merge_splits` the third and fourth have; None where there is no Triton.
    """
    costs = {
        "naive": counting.naive(step),
        "tiled": counting.tiled(step),
        "grouped": counting.grouped(step),
        "split": counting.split(step),
    }
    if answer is None or MISSING:
        return [Rung(name, cost, None, None, None) for name, cost in costs.items()]

    problem = _problem(step)
    tensors = (problem.query, problem.kv_layer, problem.block_tables, problem.query_starts, problem.context_lens)
    before = reference.paged_attention(*tensors, problem.scale, compute_dtype=torch.float64)
    rungs = []
    for name, kernel in kernels(step, answer).items():
        out, read, programs = _run(kernel, problem)
        rungs.append(Rung(name, costs[name], read, programs, (out - before).abs().max().item()))
        before = out
    return rungs


def kernels(step: Setting, answer: ModuleType) -> dict[str, Callable[..., torch.Tensor]]:
    """The ladder by name. Needs Triton."""
    from lessons.lesson07_triton_kernel.decode_kernel import decode_attention
    from lessons.lesson07_triton_kernel.naive_kernel import naive_attention
    from lessons.lesson07_triton_kernel.tiled_kernel import tiled_attention

    def with_splits(splits: int) -> Callable[..., torch.Tensor]:
        def attend(*tensors: Any, **options: Any) -> torch.Tensor:
            return decode_attention(
                *tensors, **options, splits=splits, tile=step.tile,
                tile_loop=answer.tile_loop, merge_splits=answer.merge_splits,
            )  # fmt: skip

        return attend

    def tiles(*tensors: Any, **options: Any) -> torch.Tensor:
        return tiled_attention(*tensors, **options, tile=step.tile)

    return {"naive": naive_attention, "tiled": tiles, "grouped": with_splits(1), "split": with_splits(step.splits)}


def ragged() -> Ragged:
    """The engine's kernel on a step that has decodes and a prompt."""
    step = Setting(contexts=())
    cost = counting.ragged(RAGGED, step.group, RAGGED_ROWS)
    if MISSING:
        return Ragged(RAGGED_ROWS, cost, None)
    from minipaged_kernels import triton_attention

    problem = make((step.heads, step.kv_heads), step.head_dim, step.block_size, RAGGED, torch.float32, seed=7)
    answer = problem.solve(lambda *arguments: triton_attention.paged_attention(*arguments, splits=1), device())
    return Ragged(RAGGED_ROWS, cost, problem.error(answer))


def generate(parts: Parts, small: bool, on: str) -> list[int]:
    """The first tokens of an answer, greedily. What `parts` leaves open is the reference's; on a GPU, Triton's."""
    llm = LLM("tiny-gpt", parts=parts, num_blocks=16, device=on, attention="auto" if on == "cuda" else "reference")
    sampling = SamplingParams(temperature=0.0, max_tokens=3 if small else 8)
    return list(llm.generate(PROMPT, sampling, progress=False)[0].outputs[0].token_ids)


def _problem(step: Setting) -> Problem:
    mix = tuple((1, context) for context in step.contexts)
    return make((step.heads, step.kv_heads), step.head_dim, step.block_size, mix, torch.float32, seed=7)


def _run(kernel: Callable[..., torch.Tensor], problem: Problem) -> tuple[torch.Tensor, int, int]:
    """A kernel's answer, on the CPU, and what it counted: bytes of K and V that it read, and its programs."""
    where = device()
    counter = torch.zeros(2, dtype=torch.int64, device=where)
    tensors = (problem.query, problem.kv_layer, problem.block_tables, problem.context_lens)
    out = kernel(*(tensor.to(where) for tensor in tensors), problem.scale, counter=counter)
    numbers, programs = counter.tolist()
    return out.cpu(), numbers * problem.kv_layer.element_size(), programs
