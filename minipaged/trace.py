"""StepRecord: what happened in one step, as plain data. Whoever shows, records or measures reads these, nothing else.

Knows nothing of how a step is made: the engine fills a record and hands it to its listeners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """What one sequence computed in the step.

    Args:
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
    error: str | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens computed in the step."""
        return sum(chunk.num_tokens for chunk in self.chunks)


Listener = Callable[[StepRecord], None]
