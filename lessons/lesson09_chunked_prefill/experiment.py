"""What lesson 9 measures: some answers are being written when a long prompt arrives.

It prints nothing. Tokens and steps are counted and the same everywhere; seconds are not.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lessons.lesson09_chunked_prefill.prefill_first import PrefillFirst
from lessons.runner.lesson import LESSONS
from minipaged import LLM, SamplingParams
from minipaged.cli.random_checkpoint import SIZES, write_checkpoint
from minipaged.engine import Engine
from minipaged.scheduler import Scheduler
from minipaged.trace import StepRecord

MakeScheduler = Callable[..., Scheduler]

WRITERS = ("What is the sun?", "Tell me about the brain.", "请解释什么是黑洞。")
PROMPT_TOKENS = 480
SMALL_PROMPT_TOKENS = 160
BUDGET = 64
BUDGETS = (32, 64, 128, 256, 512)
STEPS_BEFORE = 5  # that the writers have had when the prompt arrives
WRITERS_TOKENS = 200  # more than they get to write: when the long prompt's answer is there, the story is over
ANSWER_TOKENS = 4  # of the long prompt's answer
ROUNDS = 3  # of the timed runs, in turns; the quickest counts


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Args:
        number: from 1.
        decode: tokens of those who were writing before the prompt came.
        prompt: tokens of the long prompt, and later of its answer.
        seconds: it took.
    """

    number: int
    decode: int
    prompt: int
    seconds: float

    @property
    def num_tokens(self) -> int:
        return self.decode + self.prompt


@dataclass(frozen=True, slots=True)
class Arrival:
    """What happened when the long prompt came.

    Args:
        name: of the way.
        budget: tokens in a step at most.
        steps: all of them.
        arrived: the first step that could have had the prompt in it.
        gap_tokens: tokens computed between two tokens of one who writes, at most; its own is counted.
        gap_seconds: such a gap took; where there are several of so many tokens, the middle one.
        first_steps: steps from the prompt's arrival until its first token.
        first_seconds: the same.
        answers: token ids, the long prompt's last; the writers' as far as they came.
    """

    name: str
    budget: int
    steps: tuple[Step, ...]
    arrived: int
    gap_tokens: int
    gap_seconds: float
    first_steps: int
    first_seconds: float
    answers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 9 counts and measures."""

    prompt_tokens: int
    writers: int
    predicted_gap_first: int
    predicted_gap: int
    predicted_steps: int
    prefill_first: Arrival
    chunked: Arrival
    same_answers: bool
    sweep: tuple[Arrival, ...]


class Room:
    """A model with memory, in which the same thing can happen again and again under different schedulers.

    Args:
        model: "tiny-gpt", or a folder.
        writers: prompts of those who are writing when the long prompt comes.
        long: the long prompt.
        device: where the model runs.
        options: of the engine, beside its memory.
    """

    def __init__(
        self, model: str | Path, writers: Sequence[Sequence[int]], long: Sequence[int], device: str, **options: Any
    ) -> None:
        # Nothing is kept from one time to the next: each computes its prompts anew.
        self.llm = LLM(model, num_blocks=64, block_size=16, share_prefixes=False, device=device, **options)
        self.writers = writers
        self.long = long

    def arrive(self, name: str, made_of: MakeScheduler, budget: int) -> Arrival:
        """The writers begin; after some steps the long prompt comes; until its answer is there."""
        engine = self.llm.engine
        scheduler = made_of(
            engine.scheduler.memory,
            max_batch_tokens=budget,
            max_sequences=len(self.writers) + 1,
            max_positions=self.llm.model_config.max_positions,
        )
        records: list[StepRecord] = []
        engine = Engine(scheduler, engine.runner, engine.model, listeners=[records.append])
        writing = SamplingParams(temperature=0, ignore_eos=True, max_tokens=WRITERS_TOKENS)
        requests = [engine.add_request(prompt, writing) for prompt in self.writers]
        while any(len(request.sequences[0].draws) < STEPS_BEFORE for request in requests):
            engine.step()
        arrived = len(records) + 1
        answering = SamplingParams(temperature=0, ignore_eos=True, max_tokens=ANSWER_TOKENS)
        requests.append(engine.add_request(self.long, answering))
        while not requests[-1].finished:
            engine.step()
        for request in requests[:-1]:
            engine.cancel(request)
        answers = tuple(tuple(request.sequences[0].output_token_ids) for request in requests)
        return _arrival(name, budget, records, arrived, requests[-1].id, answers)


def agree(one: Arrival, other: Arrival) -> bool:
    """Both gave the same answers, as far as both came."""
    pairs = [(a, b, min(len(a), len(b))) for a, b in zip(one.answers, other.answers, strict=True)]
    return all(a[:length] == b[:length] for a, b, length in pairs)


def _arrival(
    name: str, budget: int, records: list[StepRecord], arrived: int, long: int, answers: tuple[tuple[int, ...], ...]
) -> Arrival:
    steps = []
    gaps: list[tuple[int, float]] = []
    since: dict[int, tuple[int, float]] = {}  # sequence -> tokens and seconds since its last draw
    for number, record in enumerate(records, 1):
        of_prompt = sum(chunk.num_tokens for chunk in record.chunks if chunk.request == long)
        steps.append(Step(number, record.num_tokens - of_prompt, of_prompt, record.seconds))
        since = {one: (n + record.num_tokens, t + record.seconds) for one, (n, t) in since.items()}
        for sequence, _ in record.drawn:
            gaps.append(since.get(sequence, (0, 0.0)))
            since[sequence] = (0, 0.0)
    gap_tokens = max(tokens for tokens, _ in gaps)
    gap_seconds = median(seconds for tokens, seconds in gaps if tokens == gap_tokens)
    first = next(i for i, record in enumerate(records) if any(sequence == long for sequence, _ in record.drawn))
    return Arrival(
        name,
        budget,
        tuple(steps),
        arrived,
        gap_tokens,
        gap_seconds,
        first + 2 - arrived,
        sum(record.seconds for record in records[arrived - 1 : first + 1]),
        answers,
    )


def story(prompt_tokens: int, made_of: MakeScheduler, device: str, **options: Any) -> tuple[Arrival, Arrival]:
    """With tiny-gpt and real text: prefill first, and with a budget."""
    room = Room("tiny-gpt", [], [], device, **options)
    tokenizer = room.llm.tokenizer
    assert tokenizer is not None
    room.writers = [tokenizer.encode(prompt) for prompt in WRITERS]
    room.long = tokenizer.encode(_a_long_text())[:prompt_tokens]
    room.arrive("warming up", Scheduler, BUDGET)
    everything = room.llm.model_config.max_positions
    return room.arrive("prefill first", PrefillFirst, everything), room.arrive("with a budget", made_of, BUDGET)


def _a_long_text() -> str:
    """What lesson 0 knows of the earth and the weather, read from end to end."""
    path = LESSONS / "lesson00_tiny_gpt" / "text" / "earth_and_weather.json"
    return " ".join(_strings(json.loads(path.read_text(encoding="utf-8"))))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def sweep(budgets: Sequence[int], made_of: MakeScheduler, device: str, rounds: int = ROUNDS) -> tuple[Arrival, ...]:
    """Prefill first and one budget after the other, with a larger random model; in turns, so that a slow moment of
    the machine meets them all. Of each the run that was disturbed least is kept: the quickest."""
    with tempfile.TemporaryDirectory() as folder:
        size = SIZES["12.6M"]
        model = write_checkpoint(Path(folder) / "random", size)
        long = [1 + (7 * i) % (size.vocab_size - 1) for i in range(PROMPT_TOKENS)]
        room = Room(model, [[1 + i, 2, 3, 4] for i in range(len(WRITERS))], long, device)
        ways: list[tuple[str, MakeScheduler, int]] = [("prefill first", PrefillFirst, room.llm.config.max_batch_tokens)]
        ways += [(str(budget), made_of, budget) for budget in budgets]
        runs: list[list[Arrival]] = [[] for _ in ways]
        room.arrive("warming up", Scheduler, BUDGET)
        for _ in range(rounds):
            for way, found in zip(ways, runs, strict=True):
                found.append(room.arrive(*way))
    return tuple(min(found, key=lambda run: run.first_seconds) for found in runs)
