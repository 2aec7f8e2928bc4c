"""What lesson 6 measures: bytes and time of one layer's attention in a decode step, errors, and tokens that are served.

The shapes are those of a 124 M GPT-2 (12 heads of 64 numbers, blocks of 16), since tiny-gpt's cache fits into the
processor's own. The pool holds random numbers: bytes do not care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from minipaged_kernels import backends

from lessons.lesson01_token_loop.machine import shortest_seconds
from lessons.lesson01_token_loop.shape import GPT2_124M
from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.traffic import Traffic
from minipaged import LLM, SamplingParams
from minipaged.cli import kernel_problems
from minipaged.parts import Parts

HEADS, HEAD_DIM, BLOCK_SIZE = GPT2_124M.num_heads, GPT2_124M.head_dim, 16
COPY_BYTES = 256 * 2**20  # far beyond any cache
PROMPTS = ("What is the sun?", "Tell me about glaciers.", "请解释什么是黑洞")
Attention = Callable[..., torch.Tensor]


# Bytes and time ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """A decode step: the arguments of one `paged_attention`, and what they amount to."""

    query: torch.Tensor  # (sequences, HEADS, HEAD_DIM): one new token each
    kv_layer: torch.Tensor  # (num_blocks, 2, HEADS, BLOCK_SIZE, HEAD_DIM)
    block_tables: torch.Tensor  # (sequences, blocks)
    query_starts: torch.Tensor  # (sequences + 1)
    context_lens: torch.Tensor  # (sequences)

    @classmethod
    def make(cls, sequences: int, context: int, device: str) -> Batch:
        """Equal contexts of whole blocks, which lie in the pool in a random order."""
        generator = torch.Generator(device).manual_seed(6)
        blocks = context // BLOCK_SIZE
        pool = torch.empty(sequences * blocks, 2, HEADS, BLOCK_SIZE, HEAD_DIM, device=device)
        order = torch.randperm(sequences * blocks, generator=generator, device=device)
        return cls(
            torch.randn(sequences, HEADS, HEAD_DIM, generator=generator, device=device),
            pool.uniform_(-1, 1, generator=generator),
            order.to(torch.int32).view(sequences, blocks),
            torch.arange(sequences + 1, dtype=torch.int32, device=device),
            torch.full((sequences,), context, dtype=torch.int32, device=device),
        )

    @property
    def kv_bytes(self) -> int:
        """One pass over all contexts' K and V, by formula: sequences * context * 2 * heads * head_dim * 4 bytes."""
        return int(self.context_lens.sum()) * 2 * HEADS * HEAD_DIM * self.kv_layer.element_size()

    def attend(self, attention: Attention) -> torch.Tensor:
        """Have it answered."""
        return attention(
            self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens, HEAD_DIM**-0.5
        )


@dataclass(frozen=True, slots=True)
class Way:
    """One way to attend.

    Args:
        name: what it does.
        is_counted: whether the bytes were counted; else they are by formula, since nobody can look into a kernel.
        pool_read_bytes, copy_written_bytes, copy_read_bytes: the three passes.
        scratch_bytes: the largest copy of K and V that it makes.
        milliseconds: of one layer's attention.
        largest_error: largest difference from the same in float64, on other sequences: long, short, and a prefill.
    """

    name: str
    is_counted: bool
    pool_read_bytes: int
    copy_written_bytes: int
    copy_read_bytes: int
    scratch_bytes: int
    milliseconds: float
    largest_error: float

    @property
    def moved_bytes(self) -> int:
        """All three passes."""
        return self.pool_read_bytes + self.copy_written_bytes + self.copy_read_bytes

    @property
    def gigabytes_per_second(self) -> float:
        """What it moved, in its time."""
        return self.moved_bytes / self.milliseconds / 1e6


@torch.inference_mode()
def measure(attentions: Sequence[tuple[str, Attention, bool]], batch: Batch) -> tuple[list[Way], float]:
    """Counts one call of each, times all in turns, and compares their answers to another problem with the oracle.

    Args:
        attentions: a name, an attention, and whether its bytes can be counted, of each way.
        batch: what they are to do.

    Returns:
        The ways, and the bytes per second, read and written, of a plain copy that took its turn with them.
    """
    device = batch.query.device.type
    source = torch.ones(COPY_BYTES, dtype=torch.uint8, device=device)
    destination = torch.empty_like(source)
    calls: list[Callable[[], Any]] = [lambda: destination.copy_(source)]
    calls += [partial(batch.attend, attention) for _, attention, _ in attentions]
    copy_seconds, *took = shortest_seconds(calls, device)

    mix = ((1, 1000), (1, 37), (33, 129))  # (new tokens, context)
    problem = kernel_problems.make((HEADS, HEADS), HEAD_DIM, BLOCK_SIZE, mix, torch.float32)
    ways = []
    for (name, attention, is_counted), way_seconds in zip(attentions, took, strict=True):
        passes = (batch.kv_bytes, 0, 0, 0)
        if is_counted:
            with Traffic(batch.kv_layer) as traffic:
                batch.attend(attention)
            passes = (
                traffic.pool_read_bytes, traffic.copy_written_bytes, traffic.copy_read_bytes, traffic.largest_copy_bytes
            )  # fmt: skip
        error = problem.error(problem.solve(attention, device))
        ways.append(Way(name, is_counted, *passes, way_seconds * 1e3, error))
    return ways, 2 * COPY_BYTES / copy_seconds


def kernel(device: str) -> backends.Backend:
    """The engine's own: Numba on a CPU, Triton on a GPU."""
    return backends.choose("auto", device)


# The loop, turn by turn ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """What one block did to m and l.

    Args:
        physical: where it lies.
        first, keys: its first key and how many it has.
        largest: its largest score.
        maximum, rescale, total: m afterwards, exp(m before - m), l afterwards.
    """

    physical: int
    first: int
    keys: int
    largest: float
    maximum: float
    rescale: float
    total: float


@dataclass(frozen=True, slots=True)
class Walk:
    """One query's way through its blocks.

    Args:
        num_blocks, block_size: of the pool.
        turns: in the order of reading.
        result, at_once: acc / l at the end, and a softmax over all keys at once; the first number of each.
    """

    num_blocks: int
    block_size: int
    turns: tuple[Turn, ...]
    result: float
    at_once: float


def walk(update: Callable[..., Running]) -> Walk:
    """Takes a query through 22 keys in six of a pool's 24 blocks of four."""
    num_blocks, block_size, context, head_dim = 24, 4, 22, 8
    generator = torch.Generator().manual_seed(50)
    kv = torch.randn(num_blocks, 2, 1, block_size, head_dim, generator=generator)
    query = torch.randn(1, 1, head_dim, generator=generator)  # (heads, rows, head_dim)
    table = torch.randperm(num_blocks, generator=generator)[: -(-context // block_size)].tolist()
    running = Running.start(1, 1, head_dim)
    turns, all_scores, all_values = [], [], []
    for logical, physical in enumerate(table):
        first = logical * block_size
        keys = min(block_size, context - first)
        key, value = kv[physical, :, :, :keys]
        scores = query @ key.transpose(1, 2) * head_dim**-0.5  # (1, 1, keys)
        before = running
        running = Running(*update(running, scores, value))
        rescale = torch.exp(before.maximum - running.maximum).item()
        turns.append(
            Turn(physical, first, keys, scores.max().item(), running.maximum.item(), rescale, running.total.item())
        )
        all_scores.append(scores)
        all_values.append(value)
    at_once = torch.cat(all_scores, -1).softmax(-1) @ torch.cat(all_values, 1)
    result = running.acc / running.total[..., None]
    return Walk(num_blocks, block_size, tuple(turns), result[0, 0, 0].item(), at_once[0, 0, 0].item())


# The engine ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """tiny-gpt's greedy answers, with the lesson's attention and with the engine's own."""

    tokens: int
    equal_tokens: int
    answer: str


def serve(parts: Parts, device: str, max_tokens: int) -> Served:
    """Answers the prompts twice, and compares token by token."""
    params = SamplingParams(temperature=0, max_tokens=max_tokens)
    answers = [
        LLM("tiny-gpt", parts=chosen, num_blocks=64, device=device).generate(PROMPTS, params, progress=False)
        for chosen in (parts, Parts())
    ]
    tokens = [[token for output in outputs for token in output.outputs[0].token_ids] for outputs in answers]
    equal = sum(
        a == b
        for mine, ours in zip(*answers, strict=True)
        for a, b in zip(mine.outputs[0].token_ids, ours.outputs[0].token_ids, strict=False)
    )
    return Served(len(tokens[1]), equal, answers[0][0].outputs[0].text)


# All of it -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """What the lesson found.

    Args:
        sequences, context: of the decode step.
        kv_bytes: one pass over its K and V, by formula.
        copy_gigabytes_per_second: the limit.
        gather, online, kernel: the three ways.
        walk: the picture's.
        served: tiny-gpt's tokens.
    """

    sequences: int
    context: int
    kv_bytes: int
    copy_gigabytes_per_second: float
    gather: Way
    online: Way
    kernel: Way
    walk: Walk
    served: Served
