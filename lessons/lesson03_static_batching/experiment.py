"""What lesson 3 measures: the same requests one at a time and in batches, and what a step costs by its rows.

It prints nothing. Rows and steps are counted and the same everywhere; seconds are not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import torch

from lessons.lesson01_token_loop.machine import shortest_seconds
from lessons.lesson01_token_loop.one_step import random_model
from lessons.lesson01_token_loop.shape import GPT2_124M
from lessons.lesson03_static_batching.one_at_a_time import serve_one_at_a_time
from minipaged.config import ModelConfig
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.static_batch import StaticResult, generate_static
from minipaged.model.tokenizer import Tokenizer
from minipaged.sampling_params import SamplingParams

#: Prompts, and how many tokens of answer their askers want at most. The poems end by themselves before that.
WORK = (
    ("What is the sun?", 24), ("Tell me about the brain.", 100), ("请写一首关于春天的诗。", 100),
    ("Write a poem about spring.", 100), ("什么是量子纠缠", 40), ("What is bread?", 12),
    ("What are glaciers, and how do they move across the land?", 100), ("Explain gravity to a child.", 70),
)  # fmt: skip
SMALL_WORK = tuple((prompt, min(max_tokens, 24)) for prompt, max_tokens in WORK[:4])
ROWS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Served:
    """The requests, done one way.

    Args:
        batch_size: requests in a batch at most.
        steps: forward passes; each reads all weights once.
        rows: tokens through the model.
        padded, idle: rows that were computed for nothing.
        seconds: of it all.
        answers: token ids.
    """

    batch_size: int
    steps: int
    rows: int
    padded: int
    idle: int
    seconds: float
    answers: tuple[tuple[int, ...], ...]

    @property
    def num_generated(self) -> int:
        return sum(len(answer) for answer in self.answers)

    @property
    def useful(self) -> float:
        """Share of the rows that somebody needed."""
        return 1 - (self.padded + self.idle) / self.rows


@dataclass(frozen=True, slots=True)
class StepCost:
    """One decoding step of a large random model.

    Args:
        rows: members of the batch.
        seconds: the shortest of some steps; its linear layers alone, which is what the weights are read for.
    """

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 3 counts and measures."""

    prompt_lengths: tuple[int, ...]
    answer_lengths: tuple[int, ...]
    predicted_padded: int
    predicted_idle: int
    served: tuple[Served, ...]
    same_answers: bool
    step_costs: tuple[StepCost, ...]


class Requests:
    """The model, and the work as token ids.

    Args:
        work: prompts and the answers' limits.
        device: where the model runs.
    """

    def __init__(self, work: Sequence[tuple[str, int]], device: str) -> None:
        folder = resolve_model("tiny-gpt")
        _, self.model = load_model(folder, "float32", torch.device(device))
        tokenizer = Tokenizer.from_folder(folder)
        assert tokenizer is not None
        self.titles = [prompt for prompt, _ in work]
        self.prompts = [tokenizer.encode(prompt) for prompt in self.titles]
        self.params = [SamplingParams(temperature=0, max_tokens=max_tokens) for _, max_tokens in work]

    def serve(self, batch_size: int, exercise: ModuleType) -> Served:
        """Answer them in batches of a size, with somebody's padding and mask; one at a time needs neither."""
        started_seconds = time.perf_counter()
        if batch_size == 1:
            result = serve_one_at_a_time(self.model, self.prompts, self.params)
        else:
            result = generate_static(
                self.model, self.prompts, self.params, batch_size, pad=exercise.pad, hide=exercise.hide
            )
        return _served(batch_size, result, time.perf_counter() - started_seconds)


def _served(batch_size: int, result: StaticResult, seconds: float) -> Served:
    answers = tuple(tuple(answer.token_ids) for answer in result.answers)
    return Served(
        batch_size, result.steps, result.num_tokens_computed, result.padded_rows, result.idle_rows, seconds, answers
    )


def step_costs(
    rows: Sequence[int], device: str, rounds: int = 5, config: ModelConfig = GPT2_124M
) -> tuple[StepCost, ...]:
    """How long one step of a large random model takes for so many rows.

    Its weights are half a gigabyte, which is in no cache. Attention is left out: it reads no weights.
    """
    model = random_model(config, device)

    def step(n: int) -> None:
        token_ids, positions = torch.arange(n, device=device), torch.zeros(n, dtype=torch.long, device=device)
        with torch.inference_mode():
            model.logits(model(token_ids, positions, lambda layer, query, key, value: value))

    seconds = shortest_seconds([partial(step, n) for n in rows], device, rounds)
    return tuple(map(StepCost, rows, seconds))
