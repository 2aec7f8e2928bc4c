"""StepRecord: what happened in one step. Moment: all there is to see after it. Plain data for whoever shows, records or
measures.

Knows nothing of how a step is made, nor of files: the engine fills a record and hands it to its listeners, a recorder
adds the state of the books, `trace_file.py` writes it down and reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from minipaged.plan import MemoryOp


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a sequence's state, with its cause.

    Args:
        kind: "admit", "fork", "wait" (a fork that finds no place), "preempt" or "finish".
        sequence: the sequence's id.
        cause: one line for a reader.
    """

    kind: str
    sequence: int
    cause: str


class ChunkRecord(NamedTuple):
    """What one sequence computed in the step. A tuple, since one is made for every sequence of every step.

    Attributes:
        sequence: the sequence's id.
        request: the id of its request.
        start: position of the first token.
        num_tokens: tokens computed.
        num_recomputed: of them, tokens that were computed once and then given up.
        kind: "prefill" (tokens never computed before), "recompute" (some were), or "decode".
        block_table: the physical blocks that it held, logical order.
    """

    sequence: int
    request: int
    start: int
    num_tokens: int
    num_recomputed: int
    kind: str
    block_table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step.

    Args:
        step: its number, from 0.
        started_seconds: the engine's clock when it began.
        seconds: how long it took, by the engine's clock.
        chunks: what was computed.
        events: who was admitted, forked, preempted, finished, in order, since the last record.
        num_running: sequences that go on.
        num_waiting: sequences that wait.
        total_slots: token slots in the device pool.
        held_slots: slots that sequences held while the step was computed.
        live_slots: of them, slots that hold a token's K and V once it was computed.
        operations: the memory operations that were carried out, in their order.
        drawn: (sequence, token id) of what was drawn, in order.
        waiting_cause: why the first that waits does so: "no blocks", "no budget", "no place", "memory was just found
            too small", or "just came" when the step was planned without it; None when nobody waits.
        error: one line when the forward pass raised, else None.
    """

    step: int
    started_seconds: float
    seconds: float
    chunks: tuple[ChunkRecord, ...]
    events: tuple[Event, ...]
    num_running: int
    num_waiting: int
    total_slots: int
    held_slots: int
    live_slots: int
    operations: tuple[MemoryOp, ...] = ()
    drawn: tuple[tuple[int, int], ...] = ()
    waiting_cause: str | None = None
    error: str | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens computed in the step."""
        return sum(chunk.num_tokens for chunk in self.chunks)


Listener = Callable[[StepRecord], None]


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What stays the same all through a run.

    Args:
        num_blocks: of the device pool.
        num_host_blocks: of the host pool, 0 when there is none.
        block_size: token slots in a block.
        block_bytes: what a block weighs; 0 when unknown.
        max_batch_tokens: the budget of a step.
        max_sequences: sequences that run at the same time at most.
        description: one line: the model and its pool, for a reader.
    """

    num_blocks: int
    num_host_blocks: int
    block_size: int
    block_bytes: int
    max_batch_tokens: int
    max_sequences: int
    description: str


@dataclass(frozen=True, slots=True)
class SequenceState:
    """A sequence that has not ended, as the books have it when a step is done.

    Args:
        sequence: its id.
        request: the id of its request.
        index: which of the request's `n` it is.
        running: holds blocks and is computed; else it waits.
        num_prompt: tokens of the prompt.
        num_tokens: prompt and answer so far.
        num_computed: of them, those whose K and V are in its blocks; 0 while it waits.
        num_preemptions: how often its blocks were taken back.
        blocks: its block table, logical order.
        title: a few words for a reader, such as the beginning of the prompt; "" when nobody gave any.
    """

    sequence: int
    request: int
    index: int
    running: bool
    num_prompt: int
    num_tokens: int
    num_computed: int
    num_preemptions: int
    blocks: tuple[int, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node of the prefix tree: one full block's content, and where it lies.

    Args:
        node: its id, never used again.
        parent: the id of the node before it; a root's when there is none (a root is not a node here).
        tokens: exactly block_size token ids.
        device: the device block that holds it, or None.
        host: the host block that holds a copy, or None.
    """

    node: int
    parent: int
    tokens: tuple[int, ...]
    device: int | None
    host: int | None


@dataclass(frozen=True, slots=True)
class BlockState:
    """One block of the device pool.

    Args:
        block: its number.
        holders: ids of the sequences whose tables hold it, oldest first.
        fill: slots that hold a token.
        node: the node whose content it holds, or None. A block that nobody holds is evictable with one, free without.
    """

    block: int
    holders: tuple[int, ...]
    fill: int
    node: int | None


@dataclass(frozen=True)
class Moment:
    """All there is to see when a step is done.

    Args:
        header: of the run.
        record: of the step.
        running: sequences that run, in the scheduler's order, oldest first.
        waiting: sequences that wait, likewise.
        nodes: of the prefix tree, by id.
        counts: what the memory has done since the beginning, by `MemoryStats`' names; blocks as they stand.
    """

    header: TraceHeader
    record: StepRecord
    running: tuple[SequenceState, ...]
    waiting: tuple[SequenceState, ...]
    nodes: Mapping[int, NodeState]
    counts: Mapping[str, int]

    @cached_property
    def device_blocks(self) -> tuple[BlockState, ...]:
        """The device pool, block by block."""
        size = self.header.block_size
        holders: dict[int, list[int]] = {}
        fill: dict[int, int] = {}
        for sequence in self.running:
            for i, block in enumerate(sequence.blocks):
                holders.setdefault(block, []).append(sequence.sequence)
                fill[block] = max(fill.get(block, 0), min(size, sequence.num_computed - i * size))
        node_of = {node.device: node.node for node in self.nodes.values() if node.device is not None}
        return tuple(
            BlockState(
                block,
                tuple(holders.get(block, ())),
                size if block in node_of else fill.get(block, 0),
                node_of.get(block),
            )
            for block in range(self.header.num_blocks)
        )

    @cached_property
    def host_blocks(self) -> tuple[int | None, ...]:
        """The host pool: for each block the id of the node whose copy it holds, or None."""
        node_of = {node.host: node.node for node in self.nodes.values() if node.host is not None}
        return tuple(node_of.get(block) for block in range(self.header.num_host_blocks))


class Trace(Protocol):
    """A run that was recorded, or is being recorded: any moment of it can be had."""

    @property
    def header(self) -> TraceHeader:
        """What stays the same all through the run."""
        ...

    def __len__(self) -> int:
        """Steps recorded so far."""
        ...

    def moment(self, index: int) -> Moment:
        """The moment after the `index`-th recorded step, from 0.

        Raises:
            IndexError: there is no such step.
        """
        ...
