"""What lesson 12 measures: two requests and too few blocks; conversations that come back; a rush on the real model.

It prints nothing. All of it is counted, so it is the same on every machine; seconds are in `this_machine.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lessons.lesson12_swap_manager.refusing_scheduler import RefusingScheduler
from lessons.lesson12_swap_manager.small_engine import SmallEngine, is_right
from lessons.lesson12_swap_manager.this_machine import MachineCost
from minipaged import LLM, SamplingParams
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.stats import MemoryStats
from minipaged.parts import Parts
from minipaged.recorder import Recorder
from minipaged.request import Sequence
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace

BLOCK_SIZE = 4

# Two requests that do not fit together.
PAIR_BLOCKS, PAIR_PROMPT, PAIR_ANSWER = 8, 8, 20

# Conversations that come back. Each is two full blocks and one token; the device has room for one, the host for three.
TURNS = "ABCADEA"
TURN_BLOCKS, TURN_HOST_BLOCKS, TURN_PROMPT = 3, 6, 2 * BLOCK_SIZE + 1

# A rush on the real model.
PROMPTS = (
    "What is the sun?", "Tell me about the brain.", "请解释什么是黑洞。", "Can you explain tides?", "What is tea?",
    "Tell me about glaciers.", "Explain gravity to a child.", "What is bread?",
)  # fmt: skip
RUSH_BLOCK_SIZE, RUSH_BLOCKS, RUSH_BLOCKS_SMALL, RUSH_ANSWER = 8, 28, 16, 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """How some requests fared, and what it cost.

    Args:
        answered, failed: requests.
        tokens_lost: computed for requests that then failed.
        preemptions: times that one gave way.
        tokens_recomputed: computed once more.
        blocks_out, blocks_in: moved to the host, and back.
        bytes_moved: by both.
        drops: blocks whose content was lost.
        steps: forward passes.
        answers: token ids of those that were answered, by request.
    """

    answered: int
    failed: int
    tokens_lost: int
    preemptions: int
    tokens_recomputed: int
    blocks_out: int
    blocks_in: int
    bytes_moved: int
    drops: int
    steps: int
    answers: dict[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversations, and the two pools after it.

    Args:
        name: whose turn.
        found, computed: its tokens that were brought from the host, and that were computed.
        blocks_out, blocks_in: moved in this turn.
        dropped: blocks whose content was lost.
        device: for each device block what it holds, as "A0", the first block of A; "" when nothing.
        host: likewise.
        sole: host blocks whose content is nowhere else.
        queue: host blocks in the order in which they will be dropped.
    """

    name: str
    found: int
    computed: int
    blocks_out: int
    blocks_in: int
    dropped: int
    device: tuple[str, ...]
    host: tuple[str, ...]
    sole: tuple[int, ...]
    queue: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 12 finds out."""

    pair: dict[str, Outcome]
    turns: tuple[Turn, ...]
    turns_in_order_of_arrival: tuple[Turn, ...]
    rush: dict[str, Outcome]
    crossing_per_layer: float
    crossing_per_block: float
    crossing_per_layer_pcie4: float
    machine: MachineCost
    is_right: bool  # answers as with room for all; with the learner's parts, counts as with ours


def pair(parts: Parts, host_blocks: int = 0, *, refuse: bool = False) -> Outcome:
    """Two requests in little more than half of the blocks that they come to need together."""
    house = SmallEngine.of(_refusing(parts, refuse), PAIR_BLOCKS, BLOCK_SIZE, host_blocks, share_prefixes=False)
    requests = [house.add([100 * (i + 1) + j for j in range(PAIR_PROMPT)], PAIR_ANSWER) for i in range(2)]
    steps = house.run()
    assert all(is_right(request) for request in requests if not request.error)
    return _outcome([request.sequences[0] for request in requests], house.memory.stats(), steps)


def turns(parts: Parts) -> tuple[Turn, ...]:
    """Conversations come back in turns; each turn asks for one more token."""
    house = SmallEngine.of(parts, TURN_BLOCKS, BLOCK_SIZE, TURN_HOST_BLOCKS)
    trace, told = LiveTrace(), []
    with Recorder(house.engine, trace):
        before = house.memory.stats()
        for name in TURNS:
            request = house.add([100 * (ord(name) - ord("A")) + j for j in range(TURN_PROMPT)], 1)
            house.run()
            assert is_right(request)
            now = house.memory.stats()
            moment = trace.moment(len(trace) - 1)
            device, host = [""] * TURN_BLOCKS, [""] * TURN_HOST_BLOCKS
            for node in moment.nodes.values():
                what = f"{chr(ord('A') + node.tokens[0] // 100)}{node.tokens[0] % 100 // BLOCK_SIZE}"
                if node.device is not None:
                    device[node.device] = what
                if node.host is not None:
                    host[node.host] = what
            swap = house.memory.swap
            assert swap is not None
            told.append(
                Turn(
                    name,
                    now.tokens_from_host - before.tokens_from_host,
                    sum(chunk.num_tokens for chunk in moment.record.chunks),
                    now.swaps_out - before.swaps_out,
                    now.swaps_in - before.swaps_in,
                    now.drops - before.drops,
                    tuple(device),
                    tuple(host),
                    tuple(block for block, what in enumerate(host) if what and what not in device),
                    swap.drop_order,
                )
            )
            before = now
    return tuple(told)


def rush(
    parts: Parts,
    device: str,
    num_blocks: int,
    *,
    small: bool,
    host_blocks: int = 0,
    refuse: bool = False,
) -> Outcome:
    """Prompts to tiny-gpt that all come at once; each request keeps its blocks to itself, so that each counts."""
    llm = LLM(
        "tiny-gpt",
        parts=_refusing(parts, refuse),
        num_blocks=num_blocks,
        block_size=RUSH_BLOCK_SIZE,
        host_blocks=host_blocks,
        device=device,
        watermark=0.0,
        share_prefixes=False,
    )
    records: list[StepRecord] = []
    llm.engine.listeners.append(records.append)
    prompts = PROMPTS[:5] if small else PROMPTS
    assert llm.tokenizer is not None
    requests = [
        llm.engine.add_request(
            llm.tokenizer.encode(prompt), SamplingParams(temperature=0, max_tokens=RUSH_ANSWER, ignore_eos=True)
        )
        for prompt in prompts
    ]
    while llm.engine.has_work:
        llm.engine.step()
    memory = llm.engine.scheduler.memory
    assert isinstance(memory, KVManager)
    return _outcome([request.sequences[0] for request in requests], memory.stats(), len(records))


def _refusing(parts: Parts, refuse: bool) -> Parts:
    return replace(parts, scheduler=RefusingScheduler) if refuse else parts


def _outcome(sequences: list[Sequence], stats: MemoryStats, steps: int) -> Outcome:
    failed = [sequence for sequence in sequences if sequence.finish_reason == "error"]
    return Outcome(
        answered=len(sequences) - len(failed),
        failed=len(failed),
        tokens_lost=sum(sequence.peak_computed for sequence in failed),
        preemptions=sum(sequence.num_preemptions for sequence in sequences),
        tokens_recomputed=stats.tokens_recomputed,
        blocks_out=stats.swaps_out,
        blocks_in=stats.swaps_in,
        bytes_moved=stats.bytes_moved,
        drops=stats.drops,
        steps=steps,
        answers={s.id: tuple(s.output_token_ids) for s in sequences if s not in failed},
    )
