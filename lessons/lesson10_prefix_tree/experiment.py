"""What lesson 10 measures: six questions about poems, asked alone and with a tree; then many behind one long beginning.

It prints nothing. Everything it returns is counted, or compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from itertools import pairwise, takewhile

import torch

from minipaged import LLM, SamplingParams
from minipaged.llm import Stream
from minipaged.memory.kv_manager import KVManager
from minipaged.parts import Parts
from minipaged.plan import CopyBlock
from minipaged.recorder import Recorder
from minipaged.request import Sequence
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace
from minipaged.viz.theme import name

BLOCK_SIZE = 4  # small enough to be followed by hand
NUM_BLOCKS = 96
MOST_TOKENS = 100  # of an answer; every poem ends by itself before


@dataclass(frozen=True, slots=True)
class Question:
    """One that comes after so many steps.

    Args:
        step: number of the step before which it comes.
        prompt: text.
        salt: whose it is; questions of different salts share nothing.
    """

    step: int
    prompt: str
    salt: str | None = None


LI_BAI, DU_FU = "请写一首关于春天的诗，用李白的风格。", "请写一首关于春天的诗，用杜甫的风格。"
QUESTIONS = (
    Question(0, LI_BAI),
    Question(1, DU_FU),
    Question(2, "Write a poem about spring in the style of Li Bai."),
    Question(3, "Write a poem about spring in the style of Du Fu."),
    Question(4, LI_BAI),
    Question(5, LI_BAI, "somebody else"),
)
EVICTED_BLOCKS = 12  # a stranger comes who needs so many more than are free
NUM_PREDICTED = 5  # the last one is there to share nothing

SYSTEM_PROMPT = (
    "You are a patient teacher. You answer in plain words, and you never say more than you know. "
    "When a word is hard, you explain it first. When a question has two sides, you show both of them. "
    "You do not flatter, and you do not scold. If you are asked for a poem, you write four lines and no more. "
    "If you are asked about the sky, you begin with what can be seen from a window. If you are asked about food, "
    "you begin with the field and the hand that works in it. If you are asked about the body, you begin with what "
    "can be felt. A number needs a unit, and a name needs a reason. A short answer is better than a long one, and a "
    "true answer is better than a short one. When you do not know, you say so, and then you say who may know. "
)
SYSTEM_QUESTIONS = (
    "What is the sun?", "Tell me about the brain.", "Can you explain tides?", "What is tea?", "What is bread?",
    "Tell me about glaciers.", "Explain gravity to a child.", "请解释什么是黑洞。", "What is rain?", "What is a moon?",
    "Tell me about bees.", "Can you explain sleep?", "What is snow?", "Explain light to a child.", "What is a river?",
    "请解释什么是量子纠缠。",
)  # fmt: skip
SYSTEM_BLOCK_SIZE = 16
SYSTEM_MOST_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one question's prompt.

    Args:
        name: of its sequence.
        prompt: text.
        num_prompt: tokens of it.
        num_in_place: tokens found in blocks that others computed, and shared with them.
        num_copied: tokens found inside one more block, and copied.
        num_computed: tokens computed for it.
    """

    name: str
    prompt: str
    num_prompt: int
    num_in_place: int
    num_copied: int
    num_computed: int


@dataclass(frozen=True, slots=True)
class Poems:
    """One serving of the questions.

    Args:
        asked: one for each question.
        prompt_tokens_computed: of the questions that are predicted.
        table_entries, distinct_blocks: of all tables together when the last predicted question had come: how many
            entries they have, and how many different blocks those name.
        copies: blocks copied.
        answers: token ids.
        texts: the poems.
    """

    asked: tuple[Asked, ...]
    prompt_tokens_computed: int
    table_entries: int
    distinct_blocks: int
    copies: int
    answers: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]

    @property
    def blocks_saved(self) -> int:
        return self.table_entries - self.distinct_blocks


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring tokens of two prompts, at the same positions.

    Args:
        start, end: positions.
        texts: of the first prompt, and of the second.
        same: for each layer, whether K and V are the same, bit for bit.
    """

    start: int
    end: int
    texts: tuple[str, str]
    same: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Eviction:
    """What remains of the questions when all have ended and a stranger needs room.

    Args:
        cached_before: blocks that nobody holds, kept for their content.
        free_before: blocks without content.
        needed: blocks that the stranger takes.
        evicted: blocks given up for it.
        found_before, found_after: for the first two questions, how many of their prompt's tokens are cached.
    """

    cached_before: int
    free_before: int
    needed: int
    evicted: int
    found_before: tuple[int, ...]
    found_after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """Many questions behind one long beginning, all at once.

    Args:
        num_questions: how many.
        num_common: tokens of the beginning.
        prompt_tokens: of all prompts together.
        computed: of them, those that were computed.
        repeated: of them, those in full blocks with which an earlier prompt begins, too.
        prompt_steps: steps in which prompts were computed.
        most_blocks: held at a time.
        answers: token ids.
    """

    num_questions: int
    num_common: int
    prompt_tokens: int
    computed: int
    repeated: int
    prompt_steps: int
    most_blocks: int
    answers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 10 counts."""

    alone: Poems
    shared: Poems
    stretches: tuple[Stretch, ...]
    eviction: Eviction
    system_alone: SystemPrompt
    system_shared: SystemPrompt
    tokens_not_computed: int
    blocks_saved: int
    same_answers: bool


class PoemServer:
    """An engine to which the questions come one after the other, step by step.

    Args:
        parts: the engine's.
        share: False leaves every request alone with its blocks.
        device: where the model runs.
    """

    def __init__(self, parts: Parts, *, share: bool, device: str) -> None:
        self.llm = LLM(
            "tiny-gpt", parts=parts, num_blocks=NUM_BLOCKS, block_size=BLOCK_SIZE, share_prefixes=share, device=device
        )
        assert self.llm.tokenizer is not None  # tiny-gpt has one
        self.tokenizer = self.llm.tokenizer
        memory = self.llm.engine.scheduler.memory
        assert isinstance(memory, KVManager)
        self.memory = memory
        self.trace = LiveTrace()
        self.records: list[StepRecord] = []
        self.streams: list[Stream] = []
        Recorder(self.llm.engine, self.trace, title=lambda request: QUESTIONS[request.id].prompt)
        self.llm.engine.listeners.append(self.records.append)

    @property
    def sequences(self) -> list[Sequence]:
        """Of all questions so far."""
        return [stream.request.sequences[0] for stream in self.streams]

    def run(self, until: int | None = None) -> None:
        """Step by step, up to a number of steps, or until all have ended."""
        params = SamplingParams(temperature=0, max_tokens=MOST_TOKENS)
        while until is None or len(self.records) < until:
            for question in QUESTIONS[len(self.streams) :]:
                if question.step <= len(self.records):
                    self.streams.append(self.llm.stream(question.prompt, params, cache_salt=question.salt))
            if not self.llm.engine.has_work:
                break
            self.llm.step()

    def tokens(self, text: str) -> list[str]:
        """The text of each of its tokens."""
        return [self.tokenizer.decode([token]) for token in self.tokenizer.encode(text)]

    def cached(self, text: str) -> int:
        """How many tokens of a prompt are in the cache, that need not be computed."""
        tree, tokens = self.memory.tree, self.tokenizer.encode(text)
        walk = tree.walk(tree.root(("salt", None)), tokens, 0, len(tokens) - 1)
        return len(walk.path) * BLOCK_SIZE + walk.num_shared

    def figures(self) -> Poems:
        """When all have ended."""
        asked = []
        for i, sequence in enumerate(self.sequences):
            chunks = [chunk for record in self.records for chunk in record.chunks if chunk.sequence == sequence.id]
            num_prompt = len(sequence.request.prompt_token_ids)
            start = chunks[0].start
            in_place = start // BLOCK_SIZE * BLOCK_SIZE
            asked.append(
                Asked(name(i), QUESTIONS[i].prompt, num_prompt, in_place, start - in_place, num_prompt - start)
            )
        record = self.records[QUESTIONS[NUM_PREDICTED - 1].step]
        tables = [chunk.block_table for chunk in record.chunks]
        computed = [
            min(chunk.start + chunk.num_tokens, asked[chunk.sequence].num_prompt) - chunk.start
            for record in self.records
            for chunk in record.chunks
            if chunk.kind == "prefill" and chunk.sequence < NUM_PREDICTED
        ]
        answers = tuple(tuple(sequence.output_token_ids) for sequence in self.sequences)
        return Poems(
            asked=tuple(asked),
            prompt_tokens_computed=sum(computed),
            table_entries=sum(map(len, tables)),
            distinct_blocks=len({block for table in tables for block in table}),
            copies=sum(isinstance(op, CopyBlock) for record in self.records for op in record.operations),
            answers=answers,
            texts=tuple(self.tokenizer.decode(list(answer)).strip() for answer in answers),
        )


def predicted(lengths: Items[int], common: Items[int]) -> tuple[int, int]:
    """Tokens not computed and blocks saved, by arithmetic.

    Args:
        lengths: tokens of each prompt.
        common: for each, the longest beginning that it has in common with an earlier one.
    """
    found = [min(both, length - 1) for length, both in zip(lengths, common, strict=True)]
    return sum(found), sum(tokens // BLOCK_SIZE for tokens in found)


def longest_beginnings(prompts: Items[Items[int]]) -> list[int]:
    """For each prompt, how many of its first tokens an earlier one begins with."""
    return [
        max((common_beginning(prompt, other) for other in prompts[:i]), default=0) for i, prompt in enumerate(prompts)
    ]


def common_beginning(a: Items[int], b: Items[int]) -> int:
    """How many first tokens two texts have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def compare_twins(server: PoemServer) -> tuple[Stretch, ...]:
    """The K and V of the first two questions, which were computed apart, by stretches of equal and of other tokens."""
    blocks, memory = server.llm.kv_cache.blocks, server.memory
    pair = server.sequences[:2]
    prompts = [sequence.request.prompt_token_ids for sequence in pair]
    texts = [server.tokens(QUESTIONS[i].prompt) for i in range(2)]
    # Each: (tokens, layers, 2, heads, head_dim)
    kv = []
    for sequence in pair:
        slots = [divmod(memory.slot(sequence, i), BLOCK_SIZE) for i in range(len(prompts[0]))]
        kv.append(torch.stack([blocks[block, :, :, :, offset] for block, offset in slots]))
    is_same = [a == b for a, b in zip(*prompts, strict=True)]
    edges = [0, *(i for i in range(1, len(is_same)) if is_same[i] != is_same[i - 1]), len(is_same)]
    return tuple(
        Stretch(
            start,
            end,
            ("".join(texts[0][start:end]), "".join(texts[1][start:end])),
            tuple(torch.equal(kv[0][start:end, layer], kv[1][start:end, layer]) for layer in range(kv[0].shape[1])),
        )
        for start, end in pairwise(edges)
    )


def make_room(server: PoemServer) -> Eviction:
    """A stranger asks for more blocks than are free, when all questions have ended."""
    llm, memory = server.llm, server.memory
    before, pair = memory.stats(), (LI_BAI, DU_FU)
    found_before = tuple(map(server.cached, pair))
    stranger = [17] * (BLOCK_SIZE * (before.free_blocks + EVICTED_BLOCKS))
    llm.generate([stranger], SamplingParams(max_tokens=1, temperature=0), progress=False)
    return Eviction(
        cached_before=before.evictable_blocks,
        free_before=before.free_blocks,
        needed=len(stranger) // BLOCK_SIZE,
        evicted=memory.stats().evictions - before.evictions,
        found_before=found_before,
        found_after=tuple(map(server.cached, pair)),
    )


def serve_system_prompt(parts: Parts, *, share: bool, small: bool, device: str) -> SystemPrompt:
    """All questions at once, each behind the system prompt."""
    questions = SYSTEM_QUESTIONS[:4] if small else SYSTEM_QUESTIONS
    llm = LLM(
        "tiny-gpt", parts=parts, num_blocks=320, block_size=SYSTEM_BLOCK_SIZE, share_prefixes=share, device=device
    )
    assert llm.tokenizer is not None
    records: list[StepRecord] = []
    llm.engine.listeners.append(records.append)
    system = llm.tokenizer.encode(SYSTEM_PROMPT)
    prompts = [[*system, *llm.tokenizer.encode(question)] for question in questions]
    params = SamplingParams(temperature=0, max_tokens=SYSTEM_MOST_TOKENS, ignore_eos=True)
    outputs = llm.generate(prompts, params, progress=False)
    prefills = [[chunk.num_tokens for chunk in record.chunks if chunk.kind == "prefill"] for record in records]
    return SystemPrompt(
        num_questions=len(questions),
        num_common=len(system),
        prompt_tokens=sum(map(len, prompts)),
        computed=sum(map(sum, prefills)),
        repeated=sum(common // SYSTEM_BLOCK_SIZE * SYSTEM_BLOCK_SIZE for common in longest_beginnings(prompts)),
        prompt_steps=sum(map(bool, prefills)),
        most_blocks=max(record.held_slots for record in records) // SYSTEM_BLOCK_SIZE,
        answers=tuple(tuple(output.outputs[0].token_ids) for output in outputs),
    )
