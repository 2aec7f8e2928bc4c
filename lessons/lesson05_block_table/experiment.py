"""What lesson 5 measures: one story told to both allocators, block sizes against waste, and the real engine at work.

It prints nothing. Everything it returns is counted, so it is the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from lessons.lesson05_block_table.allocator import Allocator
from minipaged import LLM, SamplingParams
from minipaged.parts import Parts
from minipaged.recorder import Recorder
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace

NUM_SLOTS = 128
BLOCK_SIZE = 4  # of the story; small enough to be followed by hand
#: Requests come with their tokens, grow by one, and go.
STORY: tuple[tuple[str, str, int], ...] = (
    ("admit", "A", 20), ("admit", "B", 28), ("admit", "C", 16), ("admit", "D", 30),
    ("append", "A", 1), ("release", "C", 0), ("admit", "E", 44),
)  # fmt: skip

PROMPTS = (
    "What is the sun?", "Tell me about the brain.", "请解释什么是黑洞。", "Can you explain tides?", "What is tea?",
    "Tell me about glaciers.", "Explain gravity to a child.", "What is bread?",
)  # fmt: skip
ENGINE_BLOCK_SIZE = 16
ENGINE_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class Beat:
    """One event of the story, as it went with one allocator.

    Args:
        action, name, num_tokens: what was asked.
        granted: whether it could be had.
        free_slots: after it.
    """

    action: str
    name: str
    num_tokens: int
    granted: bool
    free_slots: int


@dataclass(frozen=True, slots=True)
class Waste:
    """What one block size costs, over many sequences of different lengths.

    Args:
        block_size: token slots in a block.
        mean_empty, most_empty: empty slots of a sequence's last block.
        utilisation: live slots ÷ held slots.
        table_entries: numbers in all block tables together.
    """

    block_size: int
    mean_empty: float
    most_empty: int
    utilisation: float
    table_entries: int


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The real engine serving tiny-gpt, as its records tell it.

    Args:
        steps: forward passes.
        mean_empty, most_empty: empty slots of a running sequence's table, over all steps.
        utilisation: live slots ÷ held slots, over all steps.
        peak_running: sequences at a time.
        answers: token ids.
    """

    steps: int
    mean_empty: float
    most_empty: int
    utilisation: float
    peak_running: int
    answers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 5 counts."""

    regions_free_at_refusal: int
    regions_largest_hole: int
    regions_moved: int
    paged_refusals: int
    waste: tuple[Waste, ...]
    engine: EngineRun
    engine_is_right: bool  # the learner's parts gave the answers that ours give


def tell(allocator: Allocator, watch: Callable[[Beat], None] = lambda beat: None) -> list[Beat]:
    """Tells the story to an allocator, calling `watch` after each event."""
    beats = []
    for action, name, num_tokens in STORY:
        granted = True
        if action == "admit":
            granted = allocator.admit(name, num_tokens)
        elif action == "append":
            granted = allocator.append(name)
        else:
            allocator.release(name)
        beats.append(Beat(action, name, num_tokens, granted, allocator.free_slots))
        watch(beats[-1])
    return beats


def sequence_lengths(num_sequences: int, longest: int, seed: int = 5) -> list[int]:
    """Lengths that are all equally likely: the worst that can be said of blocks is said without hiding anything."""
    generator = random.Random(seed)
    return [generator.randint(1, longest) for _ in range(num_sequences)]


def waste(block_size: int, lengths: list[int]) -> Waste:
    """What sequences of these lengths leave empty in blocks of a size."""
    entries = [-(-length // block_size) for length in lengths]
    empty = [blocks * block_size - length for blocks, length in zip(entries, lengths, strict=True)]
    held = sum(entries) * block_size
    return Waste(block_size, sum(empty) / len(empty), max(empty), sum(lengths) / held, sum(entries))


def serve(parts: Parts, small: bool, device: str) -> tuple[EngineRun, LiveTrace]:
    """Serves the prompts with the real engine; every request keeps its blocks to itself, so that each counts."""
    llm = LLM(
        "tiny-gpt",
        parts=parts,
        num_blocks=ENGINE_BLOCKS,
        block_size=ENGINE_BLOCK_SIZE,
        share_prefixes=False,
        device=device,
    )
    records: list[StepRecord] = []
    trace = LiveTrace()
    llm.engine.listeners.append(records.append)
    prompts = PROMPTS[:4] if small else PROMPTS
    params = [SamplingParams(temperature=0, max_tokens=24 + 8 * i) for i in range(len(prompts))]
    with Recorder(llm.engine, trace, title=lambda request: prompts[request.id]):
        outputs = llm.generate(list(prompts), params, progress=False)
    tables = [
        (len(chunk.block_table) * ENGINE_BLOCK_SIZE, chunk.start + chunk.num_tokens)
        for record in records
        for chunk in record.chunks
    ]
    run = EngineRun(
        steps=len(records),
        mean_empty=sum(held - live for held, live in tables) / len(tables),
        most_empty=max(held - live for held, live in tables),
        utilisation=sum(live for _, live in tables) / sum(held for held, _ in tables),
        peak_running=max(len(record.chunks) for record in records),
        answers=tuple(tuple(output.outputs[0].token_ids) for output in outputs),
    )
    return run, trace
