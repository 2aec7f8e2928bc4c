"""What lesson 8 measures: the same requests four ways, and who had which place when.

It prints nothing. Steps and places are counted and the same everywhere; seconds are not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from lessons.lesson08_continuous_batching.reckoning import (
    continuous_steps,
    idle_places,
    least_steps,
    static_steps,
)
from lessons.lesson08_continuous_batching.waiting_for_the_batch import WaitingForTheBatch
from minipaged import LLM, SamplingParams
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.plain_loop import generate_plain
from minipaged.model.tokenizer import Tokenizer
from minipaged.parts import Parts
from minipaged.trace import StepRecord

# Lesson 3's requests: prompts, and how many tokens of answer their askers want at most.
WORK = (
    ("What is the sun?", 24), ("Tell me about the brain.", 100), ("请写一首关于春天的诗。", 100),
    ("Write a poem about spring.", 100), ("什么是量子纠缠", 40), ("What is bread?", 12),
    ("What are glaciers, and how do they move across the land?", 100), ("Explain gravity to a child.", 70),
)  # fmt: skip
PLACES = 4
SMALL_WORK = tuple((prompt, max_tokens // 4) for prompt, max_tokens in WORK[:6])
SMALL_PLACES = 2
BLOCK_SIZE = 16
NUM_BLOCKS = 64  # memory is not what this lesson is about: there is enough


@dataclass(frozen=True, slots=True)
class Stay:
    """One request in one place.

    Args:
        request: its number, in the order of arrival.
        place: 0, 1 … of those that there are; the first free one is taken.
        first, last: steps, counted from 1: the one that drew its first token, and the one that drew its last.
    """

    request: int
    place: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Way:
    """The requests, done one way.

    Args:
        name: of the way.
        places: requests at the same time at most.
        steps: forward passes.
        idle: places × steps, less those in which somebody wrote a token.
        seconds: of it all.
        answers: token ids.
        stays: who was where when; empty for a way that has no places.
    """

    name: str
    places: int
    steps: int
    idle: int
    seconds: float
    answers: tuple[tuple[int, ...], ...]
    stays: tuple[Stay, ...] = ()

    @property
    def num_generated(self) -> int:
        return sum(map(len, self.answers))

    @property
    def busy(self) -> float:
        """Share of the places that was used."""
        return 1 - self.idle / (self.places * self.steps)


@dataclass(frozen=True, slots=True)
class Crowd:
    """What happens with more requests, reckoned: the same lengths again and again.

    Args:
        requests: how many.
        static, continuous, least: steps.
        busy_static, busy_continuous: share of the places that is used.
    """

    requests: int
    static: int
    continuous: int
    least: int
    busy_static: float
    busy_continuous: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 8 counts and measures."""

    answer_lengths: tuple[int, ...]
    predicted_static: int
    predicted_steps: int
    predicted_idle: int
    ways: tuple[Way, ...]
    same_answers: bool
    crowds: tuple[Crowd, ...]


class Requests:
    """The work, and the ways to do it.

    Args:
        work: prompts and the answers' limits.
        places: requests at the same time at most, for the ways that batch.
        device: where the model runs.
    """

    def __init__(self, work: Sequence[tuple[str, int]], places: int, device: str) -> None:
        tokenizer = Tokenizer.from_folder(resolve_model("tiny-gpt"))
        assert tokenizer is not None
        self.titles = [prompt for prompt, _ in work]
        self.prompts = [tokenizer.encode(prompt) for prompt in self.titles]
        self.params = [SamplingParams(temperature=0, max_tokens=max_tokens) for _, max_tokens in work]
        self.places = places
        self.device = device

    def without_cache(self) -> Way:
        """One after the other, and every token by running its whole text through the model again: lesson 1's way."""
        _, model = load_model(resolve_model("tiny-gpt"), "float32", torch.device(self.device))
        started_seconds = time.perf_counter()
        answers = [generate_plain(model, *job).token_ids for job in zip(self.prompts, self.params, strict=True)]
        seconds = time.perf_counter() - started_seconds
        steps = sum(map(len, answers))
        return Way("one at a time, no cache", 1, steps, 0, seconds, tuple(map(tuple, answers)))

    def one_at_a_time(self) -> Way:
        """With a cache, in a single place."""
        return self.serve("one at a time", Parts(), 1)

    def static(self) -> Way:
        """In batches that end with their slowest."""
        return self.serve("static batches", replace(Parts(), scheduler=WaitingForTheBatch), self.places)

    def continuous(self, parts: Parts) -> Way:
        """As the engine does it, or the learner's scheduler."""
        return self.serve("continuous", parts, self.places)

    def serve(self, name: str, parts: Parts, places: int) -> Way:
        """All requests to the engine at once."""
        llm = LLM(
            "tiny-gpt",
            parts=parts,
            max_sequences=places,
            num_blocks=NUM_BLOCKS,
            block_size=BLOCK_SIZE,
            device=self.device,
        )
        records: list[StepRecord] = []
        llm.engine.listeners.append(records.append)
        started_seconds = time.perf_counter()
        outputs = llm.generate([list(prompt) for prompt in self.prompts], self.params, progress=False)
        seconds = time.perf_counter() - started_seconds
        answers = tuple(tuple(output.outputs[0].token_ids) for output in outputs)
        busy = sum(len(record.chunks) for record in records)
        return Way(name, places, len(records), places * len(records) - busy, seconds, answers, stays(records))


def stays(records: Sequence[StepRecord]) -> tuple[Stay, ...]:
    """Who had which place: whoever comes takes the first that is free."""
    taken: dict[int, int] = {}  # request -> place
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for step, record in enumerate(records, 1):
        here = [chunk.request for chunk in record.chunks]
        taken = {request: place for request, place in taken.items() if request in here}
        for request in here:
            if request not in taken:
                taken[request] = next(place for place in range(len(here)) if place not in taken.values())
            found.setdefault(request, taken[request])
            first.setdefault(request, step)
            last[request] = step
    return tuple(Stay(request, found[request], first[request], last[request]) for request in sorted(found))


def crowd(lengths: Sequence[int], places: int, times: int) -> Crowd:
    """The same answers' lengths so many times over."""
    all_lengths = list(lengths) * times
    static, continuous = static_steps(all_lengths, places), continuous_steps(all_lengths, places)
    return Crowd(
        len(all_lengths),
        static,
        continuous,
        least_steps(all_lengths, places),
        1 - idle_places(all_lengths, places, static) / (places * static),
        1 - idle_places(all_lengths, places, continuous) / (places * continuous),
    )
