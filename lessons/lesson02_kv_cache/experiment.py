"""What the lesson measures: one answer without a cache and with one, and what a token takes of known models."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import torch

from lessons.lesson01_token_loop.one_step import random_model
from lessons.lesson01_token_loop.shape import GPT2_124M
from lessons.lesson01_token_loop.token_loop import LastRow
from lessons.lesson01_token_loop.work import Work
from lessons.lesson02_kv_cache.contiguous_cache import CachedPass
from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.tokenizer import Tokenizer

PROMPT = "请解释什么是黑洞。"
NAIVE, CACHED = "nothing kept", "K and V kept"

#: Shapes of models that others have published; only what matters to K and V counts here.
SHAPES = {
    "GPT-2, 124 M": (GPT2_124M, torch.float32),
    "OPT-13B": (ModelConfig(50272, 2048, 40, 40, 40, 128, 5120, 20480), torch.float16),
    "Llama-3-8B": (ModelConfig(128256, 8192, 32, 32, 8, 128, 4096, 14336), torch.bfloat16),
    "Llama, ungrouped": (ModelConfig(128256, 8192, 32, 32, 32, 128, 4096, 14336), torch.bfloat16),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to write an answer.

    Args:
        rows: of each pass, tokens through the layers.
        flops: of each pass.
        seconds: all passes.
        last_seconds: the last pass alone.
        kept_bytes: of the cache's tensor; 0 without one.
    """

    name: str
    token_ids: tuple[int, ...]
    rows: tuple[int, ...]
    flops: tuple[int, ...]
    seconds: float
    last_seconds: float
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """The same answer both ways."""

    model: str
    prompt_tokens: int
    naive: Way
    cached: Way


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """What a token takes: by the formula, and in a tensor."""

    model: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    itemsize: int
    by_formula: int
    in_tensor: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it. Seconds are this machine's; everything else is the same everywhere."""

    text: str
    tiny: Pair
    large: Pair | None
    token_bytes: tuple[TokenBytes, ...]


class Tiny:
    """The shipped model, and the lesson's prompt."""

    def __init__(self, device: str = "cpu") -> None:
        folder = resolve_model("tiny-gpt")
        self.config, self.model = load_model(folder, device=device)
        tokenizer = Tokenizer.from_folder(folder)
        assert tokenizer is not None
        self.tokenizer = tokenizer
        self.prompt = tokenizer.encode(PROMPT)


def write_naively(model: GPT, loop: ModuleType, prompt: Sequence[int], max_tokens: int) -> Way:
    """Lesson 1's loop: every token so far, in every pass."""
    next_logits = LastRow(model)
    return _watch(NAIVE, loop, next_logits, next_logits.work, prompt, max_tokens)


def write_cached(model: GPT, loop: ModuleType, exercise: ModuleType, prompt: Sequence[int], max_tokens: int) -> Way:
    """The same loop; of every pass only the tokens that are new."""
    # The last token that is drawn is never fed back, so it needs no slot.
    slots = len(prompt) + max_tokens - 1
    cache = exercise.ContiguousCache(model.config, slots, model.dtype, model.device)
    next_logits = CachedPass(model, cache)
    return _watch(CACHED, loop, next_logits, next_logits.work, prompt, max_tokens, cache.kv.nbytes)


def _watch(
    name: str,
    loop: ModuleType,
    next_logits: Callable[[Sequence[int]], torch.Tensor],
    work: Work,
    prompt: Sequence[int],
    max_tokens: int,
    kept_bytes: int = 0,
) -> Way:
    rows: list[int] = []
    flops: list[int] = []
    seconds: list[float] = []

    def watched(token_ids: Sequence[int]) -> torch.Tensor:
        rows_before, flops_before, began = work.rows, work.flops, time.perf_counter()
        logits = next_logits(token_ids).cpu()  # which waits for a GPU to be done
        seconds.append(time.perf_counter() - began)
        rows.append(work.rows - rows_before)
        flops.append(work.flops - flops_before)
        return logits

    # No eos: answers of known length, so that formulas can be held against them.
    token_ids = loop.generate(watched, list(prompt), max_tokens, None)
    return Way(name, tuple(token_ids), tuple(rows), tuple(flops), sum(seconds), seconds[-1], kept_bytes)


def large_pair(loop: ModuleType, exercise: ModuleType, device: str) -> Pair:
    """A prompt of 100 tokens and 8 of an answer, by 124 million random weights."""
    model, prompt = random_model(GPT2_124M, device), list(range(100))
    cached = write_cached(model, loop, exercise, prompt, 8)
    return Pair("124 M", len(prompt), write_naively(model, loop, prompt, 8), cached)


def naive_rows(prompt_tokens: int, answer_tokens: int) -> int:
    """p + (p + 1) + … + (p + a - 1)."""
    return answer_tokens * prompt_tokens + answer_tokens * (answer_tokens - 1) // 2


def cached_rows(prompt_tokens: int, answer_tokens: int) -> int:
    """The prompt, then every token of the answer but the last."""
    return prompt_tokens + answer_tokens - 1


def token_bytes(exercise: ModuleType, tiny: ModelConfig) -> tuple[TokenBytes, ...]:
    """By the formula, and in a real cache's tensor: on torch's "meta" device, which takes no memory."""
    found = []
    for name, (config, dtype) in {"tiny-gpt": (tiny, torch.float32), **SHAPES}.items():
        cache = exercise.ContiguousCache(config, config.max_positions, dtype, "meta")
        found.append(
            TokenBytes(
                model=name,
                layers=config.num_layers,
                heads=config.num_heads,
                kv_heads=config.num_kv_heads,
                head_dim=config.head_dim,
                itemsize=dtype.itemsize,
                by_formula=exercise.kv_bytes_per_token(config, dtype.itemsize),
                in_tensor=cache.kv.nbytes / config.max_positions,
            )
        )
    return tuple(found)
