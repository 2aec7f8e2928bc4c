"""The three users, served: who asks what, when they come, and how they fare on a given memory.

It prints nothing. The same script runs on blocks and on reserved regions, under the same scheduler and model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from minipaged import LLM, SamplingParams
from minipaged.llm import Stream
from minipaged.memory.contiguous.contiguous_cache import in_engine
from minipaged.memory.contiguous.reserving_cache import ReservingCache
from minipaged.memory.kv_manager import KVManager
from minipaged.parts import Parts
from minipaged.recorder import Recorder
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace

NUM_SLOTS = 60
BLOCK_SIZE = 2
MAX_TOKENS = 48  # what each user allows; where the sentence will end, nobody knows
SECOND_COMES = 10  # in which step; the third comes when the first has been served
NAMES = "ABCD"  # the third user's two answers are C and D


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks."""

    text: str
    num_answers: int = 1


QUESTIONS = (
    Question("请解释什么是量子纠缠。\n"),
    Question("请解释什么是黑洞。\n"),
    Question("请解释什么是光？\n", num_answers=2),
)


@dataclass(frozen=True, slots=True)
class Fare:
    """How one answer fared, in steps.

    Args:
        name: A to D.
        num_prompt: tokens of its prompt.
        came: the step before which its user asked.
        phases: what happened to it in each step, by step: "prefill", "decode" or "recompute".
        ended: its last step.
        text: the answer.
    """

    name: str
    num_prompt: int
    came: int
    phases: dict[int, str]
    ended: int
    text: str

    @property
    def waited(self) -> int:
        """Steps between coming and ending in which nothing was computed for it."""
        return self.ended - self.came + 1 - len(self.phases)


@dataclass(frozen=True, slots=True)
class Service:
    """A run of the script.

    Args:
        fares: one for each answer.
        steps: forward passes.
        num_running: at each step, the sequences that computed something.
        held_slots, live_slots: at each step, held by sequences; and of them, those that hold a token.
        held_at_the_end: slots still held when all is done.
    """

    fares: tuple[Fare, ...]
    steps: int
    num_running: tuple[int, ...]
    held_slots: tuple[int, ...]
    live_slots: tuple[int, ...]
    held_at_the_end: int

    @property
    def waits(self) -> int:
        """Steps in which somebody who had come got nothing, over all answers."""
        return sum(fare.waited for fare in self.fares)

    @property
    def full_steps(self) -> tuple[int, ...]:
        """Steps of the full phase: at least two sequences run."""
        return tuple(step for step, running in enumerate(self.num_running) if running >= 2)

    @property
    def utilisation(self) -> float:
        """Live slots ÷ held slots in the full phase; in all of the run, if two never run."""
        steps = self.full_steps or range(self.steps)
        return sum(self.live_slots[i] for i in steps) / sum(self.held_slots[i] for i in steps)


def on_blocks(parts: Parts, device: str) -> tuple[Service, LiveTrace]:
    """The script on blocks; everything that happens is recorded. The books are checked after every step."""
    llm = LLM("tiny-gpt", parts=parts, num_blocks=NUM_SLOTS // BLOCK_SIZE, block_size=BLOCK_SIZE, device=device)
    memory = llm.engine.scheduler.memory
    assert isinstance(memory, KVManager)
    llm.engine.listeners.append(lambda record: memory.check())
    trace = LiveTrace()
    with Recorder(llm.engine, trace, title=lambda request: QUESTIONS[request.id].text.strip()):
        service = _serve(llm)
    memory.check()
    assert all(memory.pool.count(block) == 0 for block in range(memory.pool.num_blocks))
    return service, trace


def on_regions(parts: Parts, device: str) -> Service:
    """The script on as many slots, of which each answer reserves all that it may ever need."""
    parts = replace(parts, memory=in_engine(ReservingCache))
    llm = LLM("tiny-gpt", parts=parts, num_blocks=NUM_SLOTS, block_size=1, device=device)
    return _serve(llm)


def _serve(llm: LLM) -> Service:
    assert llm.tokenizer is not None
    stop = llm.tokenizer.encode("。")
    records: list[StepRecord] = []
    llm.engine.listeners.append(records.append)
    streams: list[Stream] = []
    came: list[int] = []
    while True:
        step = len(records)
        due = (step == 0, step >= SECOND_COMES, bool(streams) and streams[0].request.finished)
        while len(streams) < len(QUESTIONS) and due[len(streams)]:
            question = QUESTIONS[len(streams)]
            streams.append(llm.stream(question.text, _params(question, tuple(stop))))
            came.append(step)
        if not llm.engine.has_work:
            break
        llm.step()
    fares = []
    for stream, step in zip(streams, came, strict=True):
        for sequence in stream.request.sequences:
            phases = {
                record.step: chunk.kind
                for record in records
                for chunk in record.chunks
                if chunk.sequence == sequence.id
            }
            lead = stream.request.sequences[0]
            if sequence is not lead:  # until they part, what is computed for the first is computed for both
                parted = next(record.step for record in records if (sequence.id in dict(record.drawn)))
                phases |= {
                    record.step: chunk.kind
                    for record in records
                    for chunk in record.chunks
                    if chunk.sequence == lead.id and record.step <= parted
                }
            fares.append(
                Fare(
                    NAMES[sequence.id],
                    sequence.num_prompt_tokens,
                    step,
                    dict(sorted(phases.items())),
                    max(phases),
                    llm.tokenizer.decode(sequence.output_token_ids),
                )
            )
        stream.close()
    return Service(
        fares=tuple(fares),
        steps=len(records),
        num_running=tuple(len(record.chunks) for record in records),
        held_slots=tuple(record.held_slots for record in records),
        live_slots=tuple(record.live_slots for record in records),
        held_at_the_end=llm.engine.scheduler.memory.held_slots,
    )


def _params(question: Question, stop: tuple[int, ...]) -> SamplingParams:
    make = partial(SamplingParams, max_tokens=MAX_TOKENS, stop_token_ids=stop)
    if question.num_answers == 1:
        return make(temperature=0)
    return make(n=question.num_answers, temperature=1.5, top_k=4, seed=6)
