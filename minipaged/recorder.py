"""Recorder: a listener that writes down, step by step, what changed in the books.

It reads the scheduler, the memory and the step's record, compares them with what it has written so far, and hands a
line to its sinks. Its cost is that of the sequences in the step and of the nodes that were touched, whatever the pool's
size; who does not record pays nothing. How a line is read is `trace_state.py`'s business, where it goes the sinks'.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from dataclasses import asdict, astuple, fields
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from minipaged.engine import Engine
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.stats import Counts, MemoryStats
from minipaged.request import Request, Sequence
from minipaged.trace import ChunkRecord, NodeState, StepRecord, TraceHeader
from minipaged.trace_file import VERSION
from minipaged.trace_state import Line, SequenceBook, Table, TraceState, place_behind

logger = logging.getLogger("minipaged")

COUNTS = tuple(field.name for field in fields(MemoryStats))
# A keyframe is due when the lines since the last one weigh so many times as much as it did: keyframes make the file
# larger by an eighth, and no step is further away than eight keyframes' worth of reading.
KEYFRAME_EVERY = 8

_counts = attrgetter(*COUNTS)
_since_the_beginning = attrgetter(*Counts.__slots__)
_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Sink(Protocol):
    """Takes a trace line by line: a `TraceWriter`, a `LiveTrace`, any binary file."""

    def write(self, line: bytes) -> object:
        """A line, in UTF-8, with its newline.

        Raises:
            OSError: it cannot be taken. The recorder leaves the sink alone from then on.
            ValueError: it is closed; likewise.
        """
        ...


class Recorder:
    """Writes an engine's steps down from now on.

    A sink that fails (a full disk, a closed file) is left alone from then on, with one line in the log; the engine does
    not notice.

    Args:
        engine: between two steps; its memory is a `KVManager`.
        *sinks: who gets the lines.
        description: one line for a reader: the model and its pool.
        title: a few words for a reader about a request.
        least_bytes: lines that stand between two keyframes weigh at least so much.

    Raises:
        ValueError: the memory is another, or the engine has a recorder already.
    """

    def __init__(
        self,
        engine: Engine,
        *sinks: Sink,
        description: str = "",
        title: Callable[[Request], str] | None = None,
        least_bytes: int = 16_384,
    ) -> None:
        memory = engine.scheduler.memory
        if not isinstance(memory, KVManager):
            raise ValueError(f"Recorder: the engine's memory is a {type(memory).__name__}; it must be a KVManager")
        if memory.tiers.journal is not None:
            raise ValueError("Recorder: the engine has a recorder already; give that one a further sink")
        self._engine = engine
        self._scheduler = engine.scheduler
        self._memory = memory
        self._sinks = list(sinks)
        self._title = title or (lambda request: "")
        self._running: tuple[Sequence, ...] = ()  # as last written
        self._waiting: tuple[Sequence, ...] = ()
        self._counted: tuple[int, ...] | None = None  # what the counts were made of
        self._next_step = 0  # what the next record's number will be, unless one was missed
        self._bytes_since_keyframe = 0
        self._least_bytes = self._bytes_between_keyframes = least_bytes
        #: One line for each sink that failed.
        self.failures: list[str] = []
        header = TraceHeader(
            num_blocks=memory.pool.num_blocks,
            num_host_blocks=memory.swap.num_blocks if memory.swap else 0,
            block_size=memory.block_size,
            block_bytes=memory.block_bytes,
            max_batch_tokens=self._scheduler.max_batch_tokens,
            max_sequences=self._scheduler.max_sequences,
            description=description,
        )
        self._state = TraceState(header, COUNTS)
        self._is_torn = False  # it was interrupted while it wrote a step
        self._write({"minipaged_trace": VERSION, **asdict(header), "counts": COUNTS})
        memory.tiers.journal = {node.id: node for node in memory.tree}
        engine.listeners.append(self)

    @property
    def is_behind(self) -> bool:
        """Somebody came or was ended since the last step; the next one's line will say so."""
        return (self._running, self._waiting) != (self._scheduler.running, self._scheduler.waiting)

    def close(self) -> None:
        """Stop recording. The sinks are their owners' to close."""
        self._memory.tiers.journal = None
        if self in self._engine.listeners:
            self._engine.listeners.remove(self)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __call__(self, record: StepRecord) -> None:
        """Write the step down."""
        if not self._sinks:
            return
        # Also when a Ctrl-C struck in a step, which nobody was told of then, or when recording begins late.
        anew, self._is_torn = self._is_torn or record.step != self._next_step, True
        try:
            self._bytes_since_keyframe += self._write(self._anew(record) if anew else self._step(record))
            if self._bytes_since_keyframe > self._bytes_between_keyframes:
                size = self._write({"keyframe": self._state.keyframe()})
                self._bytes_between_keyframes = max(KEYFRAME_EVERY * size, self._least_bytes)
                self._bytes_since_keyframe = 0
        except Exception:
            self.close()
            raise
        self._is_torn = False

    # Within ----------------------------------------------------------------------------------------------------------

    def _write(self, line: Line) -> int:
        """To all sinks; returns the bytes."""
        # A character that UTF-8 does not have (from a broken file name in an error, say) becomes JSON's escape for it.
        data = _json(line).encode("utf-8", "backslashreplace") + b"\n"
        for sink in list(self._sinks):
            try:
                sink.write(data)
            except (OSError, ValueError) as error:  # ValueError: it is closed
                reason = getattr(error, "strerror", None) or " ".join(str(error).split())
                when = f"at step {self._next_step - 1}" if self._next_step > 0 else "before the first step"
                self.failures.append(f"{sink}: recording stopped {when}: {reason}")
                logger.warning(self.failures[-1])
                self._sinks.remove(sink)
                if not self._sinks:
                    self.close()
        return len(data)

    def _anew(self, record: StepRecord) -> Line:
        """The line of a step that says everything, since it is not the next one, or the last was not written whole."""
        self._state = TraceState(self._state.header, COUNTS)
        self._running = self._waiting = ()
        self._counted = None
        self._memory.tiers.journal = {node.id: node for node in self._memory.tree}
        return {"anew": True, **self._step(record)}

    def _step(self, record: StepRecord) -> Line:
        """The line of a step. `self._state` moves on with it, exactly as a reader's will."""
        line: Line = {
            "step": record.step,
            "time": [round(record.started_seconds, 6), round(record.seconds, 6)],
            "slots": [record.held_slots, record.live_slots],
        }
        self._next_step = record.step + 1
        before = (self._running, self._waiting)
        self._running, self._waiting = self._scheduler.running, self._scheduler.waiting
        self._write_new_sequences(line, before)
        self._write_chunks(line, record)
        self._write_record(line, record)
        suspects = [*self._running, *self._waiting] if self._waiting != before[1] else self._running
        self._write_queue(line, "running", self._state.running, before[0], self._running)
        self._write_queue(line, "waiting", self._state.waiting, before[1], self._waiting)
        self._write_books(line, suspects)
        self._write_nodes(line)
        self._write_counts(line)
        return {key: value for key, value in line.items() if value is not None and value != []}

    def _write_new_sequences(self, line: Line, before: tuple[tuple[Sequence, ...], tuple[Sequence, ...]]) -> None:
        if (self._running, self._waiting) == before:
            return
        facts, books = self._state.facts, self._state.sequences
        requests: list[tuple[int, int, str]] = []
        sequences: list[tuple[int, int, int]] = []
        for sequence in (*self._running, *self._waiting):
            if sequence.id in books:
                continue
            request = sequence.request
            if request.id not in facts.requests:
                num_prompt, title = len(request.prompt_token_ids), self._title(request)
                facts.requests[request.id] = (num_prompt, title)
                requests.append((request.id, num_prompt, title))
            books[sequence.id] = SequenceBook(request.id, sequence.index, sequence.num_prompt_tokens)
            sequences.append((sequence.id, request.id, sequence.index))
        line["requests"], line["sequences"] = requests, sequences

    def _write_chunks(self, line: Line, record: StepRecord) -> None:
        books, running = self._state.sequences, self._state.running  # they ran before the step
        place = run = 0  # whose turn it is of them, and how many decoded just now
        usual_drawers: list[int] = []
        chunks: list[int | tuple[int, int, int, int, int, str]] = []
        tables: list[tuple[int, ...]] = []
        for chunk in record.chunks:
            book = books.get(chunk.sequence)
            table = book.blocks if book is not None else ()
            if chunk.block_table != table:
                tables.append((chunk.sequence, *_difference(table, chunk.block_table)))
            if (
                book is not None
                and place < len(running)
                and running[place] == chunk.sequence
                and chunk.num_tokens == 1
                and chunk.kind == "decode"
                and chunk.start == book.num_computed
            ):
                place += 1
                run += 1
            else:
                if run:
                    chunks.append(run)
                    run = 0
                chunks.append(_whole(chunk))
                place = place_behind(running, chunk.sequence, place)
                if book is None:  # it came and went within the step
                    continue
            book.blocks = chunk.block_table
            book.num_computed = chunk.start + chunk.num_tokens
            if book.num_computed == book.num_tokens:
                usual_drawers.append(chunk.sequence)
        if run:
            chunks.append(run)
        line["chunks"], line["tables"] = chunks, tables

        drawers = [id for id, _ in record.drawn]
        if drawers and drawers != usual_drawers:
            line["drawers"] = drawers
        line["drawn"] = [token for _, token in record.drawn]
        for id in drawers:
            if id in books:
                books[id].num_tokens += 1

    def _write_record(self, line: Line, record: StepRecord) -> None:
        """What the books do not say."""
        line["operations"] = [
            (kind.__name__, *(block for operation in run for block in astuple(operation)))
            for kind, run in groupby(record.operations, type)
        ]
        line["events"] = [(event.kind, event.sequence, event.cause) for event in record.events]
        line["waiting_cause"], line["error"] = record.waiting_cause, record.error
        if (record.num_running, record.num_waiting) != (len(self._running), len(self._waiting)):
            line["queues"] = (record.num_running, record.num_waiting)  # a listener before this one has moved the books

    def _write_queue(
        self, line: Line, name: str, ids: list[int], before: tuple[Sequence, ...], now: tuple[Sequence, ...]
    ) -> None:
        """Who left a queue and who came to it. The others keep their order: it is by rank, which never changes."""
        if now == before:
            return
        old, new = set(ids), [sequence.id for sequence in now]
        gone = old.difference(new)
        came = [part for place, id in enumerate(new) if id not in old for part in (place, id)]
        line[name] = (sorted(gone), came)
        ids[:] = new

    def _write_books(self, line: Line, suspects: Iterable[Sequence]) -> None:
        """Numbers and tables that are not what chunks and draws make them; and forget who is gone."""
        books, table_of = self._state.sequences, self._memory.table
        numbers: list[tuple[int, int, int, int]] = []
        settled: list[tuple[int, ...]] = []
        for sequence in suspects:
            book = books[sequence.id]
            if (
                len(sequence.tokens) != book.num_tokens
                or sequence.num_computed != book.num_computed
                or sequence.num_preemptions != book.num_preemptions
            ):
                found = (len(sequence.tokens), sequence.num_computed, sequence.num_preemptions)
                book.num_tokens, book.num_computed, book.num_preemptions = found
                numbers.append((sequence.id, *found))
            table = table_of(sequence)
            if table != book.blocks:
                if table:  # else it waits, which says as much
                    settled.append((sequence.id, *_difference(book.blocks, table)))
                book.blocks = table
        line["numbers"], line["settled"] = numbers, settled
        if "running" in line or "waiting" in line:
            for id in {*line.get("running", ((),))[0], *line.get("waiting", ((),))[0]}:
                if id not in self._state.running and id not in self._state.waiting:
                    del books[id]

    def _write_nodes(self, line: Line) -> None:
        journal = self._memory.tiers.journal
        if not journal:
            return
        nodes = self._state.nodes
        changes: list[tuple[int | None, ...]] = []
        for id, node in sorted(journal.items()):
            known = nodes.get(id)
            if node.device is None and node.host is None:
                if known is not None:  # else it came and went between two lines
                    del nodes[id]
                    changes.append((id,))
            elif known is None:
                assert node.parent is not None
                nodes[id] = NodeState(id, node.parent.id, node.tokens, node.device, node.host)
                changes.append((id, node.device, node.host, node.parent.id, *node.tokens))
            elif (known.device, known.host) != (node.device, node.host):
                nodes[id] = NodeState(id, known.parent, known.tokens, node.device, node.host)
                changes.append((id, node.device, node.host))
        journal.clear()
        line["nodes"] = changes

    def _write_counts(self, line: Line) -> None:
        memory = self._memory
        on_host = memory.swap.num_used if memory.swap else 0
        counted = (memory.pool.num_free, memory.pool.num_evictable, on_host, *_since_the_beginning(memory.tiers.counts))
        if counted == self._counted:
            return  # all that `stats` says follows from these, and making one takes longer than most of a line
        self._counted = counted
        counts = list(_counts(self._memory.stats()))
        known = self._state.counts
        if counts != known:
            line["counts"] = [part for i, value in enumerate(counts) if value != known[i] for part in (i, value)]
            self._state.counts = counts


def _whole(chunk: ChunkRecord) -> tuple[int, int, int, int, int, str]:
    return (chunk.sequence, chunk.request, chunk.start, chunk.num_tokens, chunk.num_recomputed, chunk.kind)


def _difference(before: Table, now: Items[int]) -> tuple[int, ...]:
    """How many first blocks stay, and those behind them."""
    kept = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        kept += 1
    return (kept, *now[kept:])
