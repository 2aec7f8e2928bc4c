"""What lesson 11 measures: four answers to one prompt, with copies and with copy-on-write; what sharing saves, by
formula and by count; and the same formula over the lengths of two kinds of traffic.

It prints nothing. Everything it returns is counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from lessons.lesson11_copy_on_write.copying_manager import CopyingManager
from minipaged import LLM, SamplingParams
from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.kv_manager import KVManager
from minipaged.parts import Parts
from minipaged.plan import CopyBlock
from minipaged.recorder import Recorder
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, simulated_answer
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace

PROMPT = "请写一首关于春天的诗，用李白的风格。"  # 18 tokens
BLOCK_SIZE = 4
NUM_ANSWERS = 4
NUM_TOKENS = 11  # of each answer
TEMPERATURE, SEED = 1.4, 40  # four answers that begin differently
TIGHT_BLOCKS = 18  # of the pool in the story
ROOMY_BLOCKS = 64

COUNTED_PROMPTS = (18, 64, 250)
COUNTED_ANSWERS = (2, 4, 6)
COUNTED_TOKENS = 32
COUNTED_BLOCK_SIZE = 16
VOCABULARY = 1000

MEAN_LENGTHS = {"Alpaca": (19, 58), "ShareGPT": (161, 338)}  # tokens in and out, as the PagedAttention paper has them
NUM_REQUESTS = 2000


@dataclass(frozen=True, slots=True)
class Served:
    """Four answers to one prompt.

    Args:
        steps: forward passes until all had ended.
        num_preemptions: answers that had to give their blocks back.
        copies: blocks copied.
        copied_bytes: what they weigh.
        blocks_after_prompt: different blocks in all tables when the prompt was computed and the answers had parted.
        blocks_after_write: when each had written its first token.
        most_running: answers computed in one step.
        blocks_at_end: different blocks in all tables in the last step with all answers in it; 0 if there was none.
        entries_at_end: entries of those tables: what it takes when nothing is shared.
        answers: token ids.
        texts: of the answers.
    """

    steps: int
    num_preemptions: int
    copies: int
    copied_bytes: int
    blocks_after_prompt: int
    blocks_after_write: int
    most_running: int
    blocks_at_end: int
    entries_at_end: int
    answers: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overwritten:
    """Two answers that share their last block and write without copying.

    Args:
        drawn: the token that each drew first.
        read_back: what each finds in the cache at its position.
        answers: what they wrote from there on.
        right: what they should have written.
    """

    drawn: tuple[int, int]
    read_back: tuple[int, int]
    answers: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Saving:
    """Blocks of several answers to one prompt when each has written the same number of tokens.

    Args:
        num_prompt: tokens of the prompt.
        num_answers: n.
        unshared: blocks, if nothing is shared.
        used: blocks in use, counted in the engine's tables.
        by_formula: blocks in use, by arithmetic.
        copies: blocks copied.
    """

    num_prompt: int
    num_answers: int
    unshared: int
    used: int
    by_formula: int
    copies: int

    @property
    def share(self) -> float:
        return 1 - self.used / self.unshared


@dataclass(frozen=True, slots=True)
class Traffic:
    """What sharing saves over the whole lives of many requests, by the formula.

    Args:
        name: whose mean lengths they have.
        mean_prompt, mean_answer: tokens.
        shares: blocks saved ÷ blocks unshared, for each n of `COUNTED_ANSWERS`.
    """

    name: str
    mean_prompt: int
    mean_answer: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 11 counts."""

    copying_tight: Served
    copying: Served
    shared: Served
    overwritten: Overwritten
    savings: tuple[Saving, ...]
    traffic: tuple[Traffic, ...]
    blocks_saved: int
    same_answers: bool


def serve(parts: Parts, num_blocks: int, device: str) -> tuple[Served, LiveTrace]:
    """Four answers to the prompt, on a pool of so many blocks."""
    llm = LLM("tiny-gpt", parts=parts, num_blocks=num_blocks, block_size=BLOCK_SIZE, watermark=0, device=device)
    records: list[StepRecord] = []
    trace = LiveTrace()
    params = SamplingParams(n=NUM_ANSWERS, max_tokens=NUM_TOKENS, temperature=TEMPERATURE, seed=SEED, ignore_eos=True)
    Recorder(llm.engine, trace, title=lambda request: PROMPT)
    after_prompt = 0

    def listen(record: StepRecord) -> None:
        nonlocal after_prompt
        records.append(record)
        if len(records) == 1:
            memory = llm.engine.scheduler.memory
            tables = [memory.table(sequence) for sequence in llm.engine.scheduler.running]
            after_prompt = len({block for table in tables for block in table})

    llm.engine.listeners.append(listen)
    (output,) = llm.generate(PROMPT, params, progress=False)
    together = [record for record in records if len(record.chunks) == NUM_ANSWERS]
    at_end = [chunk.block_table for chunk in together[-1].chunks] if together else []
    copies = sum(isinstance(op, CopyBlock) for record in records for op in record.operations)
    served = Served(
        steps=len(records),
        num_preemptions=sum(event.kind == "preempt" for record in records for event in record.events),
        copies=copies,
        copied_bytes=copies * llm.kv_cache.block_bytes,
        blocks_after_prompt=after_prompt,
        blocks_after_write=len({block for chunk in records[1].chunks for block in chunk.block_table}),
        most_running=max(len(record.chunks) for record in records),
        blocks_at_end=len({block for table in at_end for block in table}),
        entries_at_end=sum(map(len, at_end)),
        answers=tuple(tuple(answer.token_ids) for answer in output.outputs),
        texts=tuple(answer.text for answer in output.outputs),
    )
    return served, trace


def naive(parts: Parts) -> Parts:
    """The same parts, with a memory that copies the whole cache for each answer."""
    return replace(parts, memory=CopyingManager)


def write_without_copying(manager: Callable[..., KVManager]) -> Overwritten:
    """Two answers to a prompt of 18 tokens under a manager that never copies, in a simulated cache.

    The simulated cache stores in each slot the token whose K and V would lie there, and what an answer draws depends on
    all that it reads.
    """
    prompt, size, seed = list(range(100, 118)), BLOCK_SIZE, 4
    engine, runner = _simulated(Parts(memory=manager), 32, size)
    request = engine.add_request(prompt, SamplingParams(n=2, max_tokens=6, seed=seed))
    engine.step()  # the prompt; each draws its first token
    engine.step()  # both write it
    memory, pair = engine.scheduler.memory, request.sequences
    read_back = [runner.context(memory.table(sequence), 19)[18] for sequence in pair]
    drawn = [sequence.tokens[18] for sequence in pair]
    while not request.finished:
        engine.step()
    return Overwritten(
        (drawn[0], drawn[1]),
        (read_back[0], read_back[1]),
        tuple(tuple(sequence.output_token_ids) for sequence in pair),
        tuple(tuple(simulated_answer(prompt, 6, VOCABULARY, seed, i)) for i in range(2)),
    )


def blocks_used(num_prompt: int, num_written: int, num_answers: int, block_size: int) -> tuple[int, int]:
    """(with sharing, without): blocks of n answers that have written so many tokens each behind the prompt.

    Full blocks of the prompt are there once. All else each answer has for itself.

    Args:
        num_prompt: tokens.
        num_written: tokens of each answer that are in the cache, at least 1.
        num_answers: n.
        block_size: token slots in a block.
    """
    each = -(-(num_prompt + num_written) // block_size)
    full = num_prompt // block_size
    return full + num_answers * (each - full), num_answers * each


def count_savings(parts: Parts, small: bool) -> tuple[Saving, ...]:
    """Prompts of several lengths, several answers each: the formula, and what the engine's tables say."""
    savings = []
    for num_prompt in COUNTED_PROMPTS[:2] if small else COUNTED_PROMPTS:
        for num_answers in COUNTED_ANSWERS:
            engine, _ = _simulated(parts, 128, COUNTED_BLOCK_SIZE)
            records: list[StepRecord] = []
            engine.listeners.append(records.append)
            params = SamplingParams(n=num_answers, max_tokens=COUNTED_TOKENS, seed=1)
            request = engine.add_request([i % VOCABULARY for i in range(num_prompt)], params)
            while not request.finished:
                engine.step()
            tables = [chunk.block_table for chunk in records[-1].chunks]
            by_formula, unshared = blocks_used(num_prompt, COUNTED_TOKENS - 1, num_answers, COUNTED_BLOCK_SIZE)
            used = len({block for table in tables for block in table})
            copies = sum(isinstance(op, CopyBlock) for record in records for op in record.operations)
            assert sum(map(len, tables)) == unshared
            savings.append(Saving(num_prompt, num_answers, unshared, used, by_formula, copies))
    return tuple(savings)


def over_traffic(name: str, num_requests: int = NUM_REQUESTS, block_size: int = COUNTED_BLOCK_SIZE) -> Traffic:
    """Requests with the mean lengths of a data set, few of them long; each is looked at after every token it writes."""
    mean_prompt, mean_answer = MEAN_LENGTHS[name]
    generator = random.Random(11)

    def length(mean: int) -> int:
        return 1 + int(generator.expovariate(1 / (mean - 0.5)))  # cutting it down to whole tokens takes half a one

    lengths = [(length(mean_prompt), length(mean_answer)) for _ in range(num_requests)]
    shares = []
    for num_answers in COUNTED_ANSWERS:
        all_used = all_unshared = 0
        for num_prompt, num_answer in lengths:
            for num_written in range(1, num_answer):
                used, unshared = blocks_used(num_prompt, num_written, num_answers, block_size)
                all_used, all_unshared = all_used + used, all_unshared + unshared
        shares.append(1 - all_used / all_unshared)
    return Traffic(name, mean_prompt, mean_answer, tuple(shares))


def _simulated(parts: Parts, num_blocks: int, block_size: int) -> tuple[Engine, SimulatedRunner]:
    memory = parts.memory(parts.pool(num_blocks), parts.tree(block_size), None, table=parts.table)
    runner = SimulatedRunner(num_blocks, block_size, VOCABULARY)
    model = ModelConfig(VOCABULARY, num_blocks * block_size, 1, 1, 1, 1, 1, 1, eos_token_ids=())
    return Engine(Scheduler(memory, order=parts.order), runner, model), runner
