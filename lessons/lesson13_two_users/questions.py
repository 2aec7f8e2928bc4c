"""What the quiz asks before each step of the story that matters. Every answer is counted from the record of the run."""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.plan import CopyBlock
from minipaged.trace import Moment
from minipaged.viz.history import History


@dataclass(frozen=True, slots=True)
class Item:
    """One question, with its answer and why it is so."""

    question: str
    answer: int
    because: str


def items(history: History, index: int) -> list[Item]:
    """The questions before the `index`-th step; none before most."""
    now = history.moment(index)
    before = history.moment(index - 1) if index else None
    events = {(event.kind, event.sequence) for event in now.record.events}
    asked = []
    for kind, sequence in sorted(events):
        make = {("admit", 0): _first, ("admit", 1): _second, ("admit", 2): _third}.get((kind, sequence))
        if make is not None:
            asked += make(now)
        elif kind == "finish" and before is not None:
            asked += _end(before, now, sequence)
    asked += [item for kind, _ in sorted(events) if kind == "fork" for item in _fork(now)]
    if any(isinstance(operation, CopyBlock) for operation in now.record.operations):
        asked += _copy(now)
    if index == first_loss(history):
        asked.append(
            Item(
                "No block is free, and each of those who run needs one. How many cached blocks are given up?",
                _num_lost(history, index),
                "what A left behind goes, last block first; nobody waits for it.",
            )
        )
    return asked


def count(moment: Moment, block: int) -> int:
    """How many tables hold a block."""
    return len(moment.device_blocks[block].holders)


def first_loss(history: History) -> int:
    """The first step in which more than one cached block is given up; -1 when there is none."""
    return next((index for index in range(len(history)) if _num_lost(history, index) > 1), -1)


def _num_lost(history: History, index: int) -> int:
    return sum(change.kind in ("dropped", "evicted") for change in history.facts(index).changes)


def _first(now: Moment) -> list[Item]:
    chunk = now.record.chunks[0]
    return [
        Item(
            f"A's prompt has {chunk.num_tokens} tokens, a block has {now.header.block_size} slots. How many blocks?",
            len(chunk.block_table),
            "rounded up, and nothing is reserved for the answer.",
        )
    ]


def _second(now: Moment) -> list[Item]:
    chunk = next(chunk for chunk in now.record.chunks if chunk.sequence == 1)
    shared = sum(count(now, block) > 1 for block in chunk.block_table)
    return [
        Item(
            f"B's prompt has {chunk.start + chunk.num_tokens} tokens, and its first {chunk.start} are A's. "
            "How many blocks does B share with A?",
            shared,
            "they are full, they hold just those tokens, and they are there.",
        ),
        Item("How many of B's tokens are computed?", chunk.num_tokens, "those behind the common beginning."),
        Item("How many tables hold block 0 now?", count(now, 0), "A's and B's."),
    ]


def _third(now: Moment) -> list[Item]:
    chunk = next(chunk for chunk in now.record.chunks if chunk.sequence == 2)
    return [
        Item(
            f"A is gone. C's prompt has {chunk.start + chunk.num_tokens} tokens and the same beginning. "
            "How many of them are computed?",
            chunk.num_tokens,
            "B still holds the common blocks; had B gone, too, they would be cached, which is as good.",
        )
    ]


def _fork(now: Moment) -> list[Item]:
    return [
        Item("The third user wants two answers: D is forked from C. How many blocks does that take?", 0,
             "D's table names C's blocks. Nothing is written, so nothing is copied."),
        Item("How many tables hold block 0 now?", count(now, 0), "B's, C's and D's."),
    ]  # fmt: skip


def _copy(now: Moment) -> list[Item]:
    copies = sum(isinstance(operation, CopyBlock) for operation in now.record.operations)
    return [
        Item(
            "C and D both write a token into the half-filled last block that they share. How many blocks are copied?",
            copies,
            "who writes first takes a copy; then the other has the old block to itself.",
        )
    ]


def _end(before: Moment, now: Moment, sequence: int) -> list[Item]:
    name = "ABCD"[sequence]
    if not now.running:
        held = sum(bool(block.holders) for block in now.device_blocks)
        return [Item(f"{name} ends, the last one. How many blocks have a count above 0?", held, "nobody holds any.")]
    return [
        Item(
            f"{name} ends. It held block 0 with others. How many tables hold it now?",
            count(now, 0),
            f"one less than the {count(before, 0)} before; it is not free while anybody reads it.",
        )
    ]
