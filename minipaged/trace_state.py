"""TraceState: the books as a trace tells them, and how each line of a trace moves them on by a step.

Both ends hold one: the recorder, to write only what differs from the line before, and the reader, who adds the lines up
again. It knows neither engine nor file: a line is a dict here, as JSON has it.

A step's line. What is left out is empty, or as it was::

    step        its number
    time        [when it began, how long it took], in seconds
    slots       [held, live]
    chunks      in turn: a number, when so many of those who ran before the step, the next ones of them, decoded one
                token each, where they stood; else [sequence, request, start, tokens, recomputed, kind], and whoever
                stands behind that sequence is the next one
    tables      [sequence, n, blocks …]: its chunk's table is the first n blocks of the table before, then these
    operations  [kind, from, to, from, to …], neighbours of one kind together; ["Poison", block, block …]
    drawn       token ids, drawn by the chunks that reached the end of their sequence, or else by
    drawers     these sequences
    events      [kind, sequence, cause]
    queues      [running, waiting] in the record, where the books have others
    waiting_cause, error
    requests    [request, prompt tokens, title], once
    sequences   [sequence, request, index], once
    running     [[who left it], [place, who came to it, …]], in the end; so, too,
    waiting
    numbers     [sequence, tokens, computed, preemptions], where other than its chunk and its draw would have it
    anew        true: nothing of what was known before holds; what is written once may be written again. A step that is
                not the next one says so: the first of a run that was recorded late, one behind a step that was missed
    settled     as `tables`: what became of the table when the step was done
    nodes       [node, device block, host block], and parent and token ids when it is new; [node] when it is gone
    counts      [which, value, …]; the header names them

A keyframe's line, from which a reader can go on without the lines before it, but for what is written once::

    keyframe    {running, waiting: [sequence, tokens, computed, preemptions, blocks …] each;
                 nodes: [node, device block, host block] each; counts: the values}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from typing import Any

from minipaged.plan import CopyBlock, MemoryOp, Poison, SwapIn, SwapOut
from minipaged.trace import ChunkRecord, Event, Moment, NodeState, SequenceState, StepRecord, TraceHeader

Line = dict[str, Any]
Table = tuple[int, ...]

OPERATIONS: dict[str, Any] = {kind.__name__: kind for kind in (CopyBlock, SwapOut, SwapIn, Poison)}
CHUNK_KINDS = ("prefill", "recompute", "decode")
MAX_NUMBER = 2**63 - 1  # of whatever is counted or numbered in a trace
KEYS = frozenset(
    (
        "step", "time", "slots", "chunks", "tables", "operations", "drawn", "drawers", "events", "queues",
        "waiting_cause", "error", "requests", "sequences", "running", "waiting", "numbers", "settled", "nodes",
        "counts", "anew",
    )
)  # fmt: skip


@dataclass(slots=True)
class SequenceBook:
    """A sequence that runs or waits; the names are explained at `SequenceState`."""

    request: int
    index: int
    num_tokens: int
    num_computed: int = 0
    num_preemptions: int = 0
    blocks: Table = ()


@dataclass(slots=True)
class Facts:
    """What never changes and is written once, by id."""

    requests: dict[int, tuple[int, str]] = field(default_factory=dict)  # prompt tokens, title
    sequences: dict[int, tuple[int, int]] = field(default_factory=dict)  # request, index
    content: dict[int, tuple[int, Table]] = field(default_factory=dict)  # a node's parent and tokens


class OutOfOrderError(ValueError):
    """A step's line that is not the next one: lines were lost, doubled, or put in another order."""


class TraceState:
    """The books when a step is done.

    Args:
        header: the trace's.
        count_names: what the trace counts.
        facts: what was written once in the lines that were read so far; several states of one trace may share it.

    Raises:
        OutOfOrderError: from `apply`, the line of another step than the next. The state is as it was.
        ValueError, TypeError, KeyError, IndexError, AttributeError: from `apply` and `restore`, something that is no
            line of a trace. The state is of no use then.
    """

    def __init__(self, header: TraceHeader, count_names: Items[str], facts: Facts | None = None) -> None:
        self.header = header
        self.count_names = count_names
        self.facts = facts or Facts()
        self.sequences: dict[int, SequenceBook] = {}
        self.running: list[int] = []  # ids, oldest first
        self.waiting: list[int] = []
        self.nodes: dict[int, NodeState] = {}
        self.counts = [0] * len(count_names)
        self.next_step: int | None = 0  # None behind a keyframe, which has no number

    def moment(self, record: StepRecord) -> Moment:
        """The state as something to look at. It may move on: a moment keeps what it has."""
        return Moment(
            self.header,
            record,
            tuple(self._shown(id, True) for id in self.running),
            tuple(self._shown(id, False) for id in self.waiting),
            dict(self.nodes),
            dict(zip(self.count_names, self.counts, strict=True)),
        )

    # Reading ---------------------------------------------------------------------------------------------------------

    def apply(self, line: Line) -> StepRecord:
        """Move on by one step; returns its record."""
        unknown = line.keys() - KEYS
        if unknown:
            raise ValueError(f"unknown key {min(unknown)!r}")
        step = _number(line["step"])
        self._require_next(step, "anew" in line)
        if "anew" in line:
            self._forget()
        self.next_step = step + 1
        self._learn(line)
        chunks, usual_drawers = self._chunks(line)
        drawn = self._drawn(line, usual_drawers)
        self._come_and_go(line)
        for id, *numbers in line.get("numbers", ()):
            book = self.sequences[id]
            book.num_tokens, book.num_computed, book.num_preemptions = map(_number, numbers)
        for id, kept, *blocks in line.get("settled", ()):
            self.sequences[id].blocks = self._table(self.sequences[id].blocks, kept, blocks)
        for node in line.get("nodes", ()):
            if len(node) == 1:
                del self.nodes[node[0]]
            else:
                self._place(*node[:3])
        changes = line.get("counts", ())
        for which, value in zip(changes[::2], changes[1::2], strict=True):
            self.counts[which] = _number(value)
        started, seconds = line["time"]
        held, live = map(_number, line["slots"])
        num_running, num_waiting = map(_number, line.get("queues", (len(self.running), len(self.waiting))))
        return StepRecord(
            step=step,
            started_seconds=_seconds(started),
            seconds=_seconds(seconds),
            chunks=chunks,
            events=tuple(Event(_text(kind), _number(id), _text(cause)) for kind, id, cause in line.get("events", ())),
            num_running=num_running,
            num_waiting=num_waiting,
            total_slots=self.header.num_blocks * self.header.block_size,
            held_slots=held,
            live_slots=live,
            operations=tuple(operation for run in line.get("operations", ()) for operation in self._operations(*run)),
            drawn=drawn,
            waiting_cause=_text(line["waiting_cause"]) if "waiting_cause" in line else None,
            error=_text(line["error"]) if "error" in line else None,
        )

    def restore(self, keyframe: Line) -> None:
        """Become what a keyframe says. The facts must be those of all lines before it."""
        self._forget()
        for name, ids in (("running", self.running), ("waiting", self.waiting)):
            for id, num_tokens, num_computed, num_preemptions, *blocks in keyframe[name]:
                of, nth = self.facts.sequences[id]
                self.sequences[id] = SequenceBook(
                    of,
                    nth,
                    _number(num_tokens),
                    _number(num_computed),
                    _number(num_preemptions),
                    self._table((), 0, blocks),
                )
                ids.append(id)
        for id, device, host in keyframe["nodes"]:
            self._place(id, device, host)
        for which, value in enumerate(keyframe["counts"]):
            self.counts[which] = _number(value)
        self.next_step = None

    # Writing ---------------------------------------------------------------------------------------------------------

    def keyframe(self) -> Line:
        """What `restore` reads."""

        def queue(ids: list[int]) -> list[list[int]]:
            books = ((id, self.sequences[id]) for id in ids)
            return [[id, b.num_tokens, b.num_computed, b.num_preemptions, *b.blocks] for id, b in books]

        return {
            "running": queue(self.running),
            "waiting": queue(self.waiting),
            "nodes": [[node.node, node.device, node.host] for node in self.nodes.values()],
            "counts": self.counts,
        }

    # Within ----------------------------------------------------------------------------------------------------------

    def _shown(self, id: int, running: bool) -> SequenceState:
        book = self.sequences[id]
        num_prompt, title = self.facts.requests[book.request]
        return SequenceState(
            id,
            book.request,
            book.index,
            running,
            num_prompt,
            book.num_tokens,
            book.num_computed,
            book.num_preemptions,
            book.blocks,
            title,
        )

    def _forget(self) -> None:
        for known in (self.sequences, self.running, self.waiting, self.nodes):
            known.clear()
        self.counts = [0] * len(self.count_names)

    def _require_next(self, step: int, is_anew: bool) -> None:
        due = self.next_step
        if due is None or step == due or (is_anew and step > due):
            return
        what = "a line is missing" if step > due else "it is there twice, or the lines are in another order"
        raise OutOfOrderError(f"this is step {step}, where step {due} is due: {what}")

    def _learn(self, line: Line) -> None:
        """What is written once."""
        for id, num_prompt, title in line.get("requests", ()):
            self.facts.requests[_number(id)] = (_number(num_prompt), _text(title))
        for id, request, nth in line.get("sequences", ()):
            self.facts.sequences[_number(id)] = (request, _number(nth))
            self.sequences[id] = SequenceBook(request, nth, self.facts.requests[request][0])
        for id, _device, _host, parent, *tokens in (node for node in line.get("nodes", ()) if len(node) > 3):
            if len(tokens) != self.header.block_size:
                raise ValueError(f"a node of {len(tokens)} tokens, where blocks have {self.header.block_size}")
            self.facts.content[_number(id)] = (_number(parent), tuple(map(_number, tokens)))

    def _chunks(self, line: Line) -> tuple[tuple[ChunkRecord, ...], list[int]]:
        """What was computed, with the tables as they were then; and whose chunk ends with the last token."""
        tables: dict[int, Table] = {}
        for id, kept, *blocks in line.get("tables", ()):
            book = self.sequences.get(id)
            tables[id] = self._table(book.blocks if book else (), kept, blocks)
            if book is not None:
                book.blocks = tables[id]
        chunks: list[ChunkRecord] = []
        usual_drawers: list[int] = []
        for id, request, start, num_tokens, num_recomputed, kind in self._parts(line.get("chunks", ())):
            book = self.sequences.get(id)
            table = book.blocks if book is not None else tables[id]
            chunks.append(ChunkRecord(id, request, start, num_tokens, num_recomputed, kind, table))
            if book is not None:
                book.num_computed = start + num_tokens
                if book.num_computed == book.num_tokens:
                    usual_drawers.append(id)
        return tuple(chunks), usual_drawers

    def _parts(self, chunks: Items[Any]) -> Iterator[tuple[int, int, int, int, int, str]]:
        """Sequence, request, start, tokens, recomputed and kind of each chunk, written out."""
        place = 0  # whose turn it is of those who ran before the step
        for chunk in chunks:
            if isinstance(chunk, list):
                *numbers, kind = chunk
                if kind not in CHUNK_KINDS:
                    raise ValueError(f"unknown kind of chunk {kind!r}")
                id, request, start, num_tokens, num_recomputed = map(_number, numbers)
                yield id, request, start, num_tokens, num_recomputed, kind
                place = place_behind(self.running, id, place)
                continue
            if not 0 < _number(chunk) <= len(self.running) - place:
                raise ValueError(f"{chunk} sequences decode, of {len(self.running) - place} whose turn it can be")
            for id in self.running[place : place + chunk]:
                book = self.sequences[id]
                yield id, book.request, book.num_computed, 1, 0, "decode"
            place += chunk

    def _drawn(self, line: Line, usual_drawers: list[int]) -> tuple[tuple[int, int], ...]:
        tokens = line.get("drawn", ())
        drawers: Items[int] = line.get("drawers") or (usual_drawers if tokens else ())
        for id in drawers:
            if id in self.sequences:
                self.sequences[id].num_tokens += 1
        return tuple((_number(id), _number(token)) for id, token in zip(drawers, tokens, strict=True))

    def _come_and_go(self, line: Line) -> None:
        """Both queues; who is in neither is gone, and who does not run holds no block."""
        left: list[int] = []
        for name, ids in (("running", self.running), ("waiting", self.waiting)):
            gone, came = line.get(name, ((), ()))
            for id in gone:
                ids.remove(id)
            for place, id in zip(came[::2], came[1::2], strict=True):
                ids.insert(place, id)
            left += gone
        if left or "running" in line or "waiting" in line:
            here = [*self.running, *self.waiting]
            if len(set(here)) < len(here) or not self.sequences.keys() >= set(here):
                raise ValueError("a sequence stands twice in the queues, or never came")
        for id in left:
            if id not in self.running:
                self.sequences[id].blocks = ()
                if id not in self.waiting:
                    del self.sequences[id]

    def _place(self, id: int, device: int | None, host: int | None) -> None:
        if device is None and host is None:
            raise ValueError(f"node {id} is nowhere")
        if device is not None:
            _block(device, self.header.num_blocks)
        if host is not None:
            _block(host, self.header.num_host_blocks)
        self.nodes[id] = NodeState(id, *self.facts.content[id], device, host)

    def _table(self, before: Table, kept: int, blocks: Iterable[int]) -> Table:
        if not 0 <= kept <= len(before):
            raise ValueError(f"a table of {len(before)} blocks cannot keep {kept}")
        num_blocks = self.header.num_blocks
        return before[:kept] + tuple(_block(block, num_blocks) for block in blocks)

    def _operations(self, name: str, *blocks: int) -> list[MemoryOp]:
        kind = OPERATIONS[name]
        size = len(kind.__slots__)
        pools = {"host": self.header.num_host_blocks}
        limits = [pools.get(slot, self.header.num_blocks) for slot in kind.__slots__]
        return [
            kind(*(_block(block, limit) for block, limit in zip(blocks[i : i + size], limits, strict=True)))
            for i in range(0, len(blocks), size)
        ]


def place_behind(ids: list[int], id: int, place: int) -> int:
    """Where the next one stands, behind this one; where it stood, when this one is not among them."""
    return ids.index(id) + 1 if id in ids else place


# A reader looks at each of these, so that what shows a trace need not be afraid of what is in it.


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise ValueError(f"{_short(value)} is no number of something")
    return value


def _block(value: Any, num_blocks: int) -> int:
    if type(value) is not int or not 0 <= value < num_blocks:
        raise ValueError(f"there is no block {_short(value)} in a pool of {num_blocks}")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= MAX_NUMBER:  # nor NaN
        raise ValueError(f"{_short(value)} is no time")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{_short(value)} is no text")
    return value


def _short(value: Any) -> str:
    """For a message: not all of a long one."""
    return ascii(value)[:40] if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"
