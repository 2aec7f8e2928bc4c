"""What changed in a step, block by block, and why: from the moment before, the moment after, and the record between.

A block can change hands twice in one step: before the forward pass (taken, shared, copied, evicted, swapped) and at its
end (released, forked, one of two equal blocks given up). What it was in between, the record's chunks say: they carry
the tables with which the step was computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cached_property

from rich.text import Text

from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.trace import Event, Moment
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, name, with_names

# The rarest first: of several changes of one block the map marks the first, and a short list loses the last.
KINDS = ("swapped out", "evicted", "dropped", "copied", "swapped in", "new", "shared", "released")


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One change of one block.

    Args:
        tier: "device" or "host".
        block: its number there.
        kind: one of `KINDS`.
        cause: in words; "{}" stands for `other`.
        other: the number of a second block, if one had to do with it.
        tokens: first and last + 1 of the positions that it is about, if it is about some.
    """

    tier: str
    block: int
    kind: str
    cause: str
    other: int | None = None
    tokens: tuple[int, int] | None = None


def block_changes(before: Moment | None, now: Moment) -> tuple[BlockChange, ...]:
    """All changes of the step that led to `now`, in the order in which they befell each block.

    Args:
        before: the moment of the step before; None when there was none.
        now: the moment whose record the step has.
    """
    return tuple(_Step(before, now).changes())


def marks(changes: Iterable[BlockChange], tier: str) -> dict[int, str]:
    """For each block of a tier that changed, the kind that the map marks."""
    kinds: dict[int, str] = {}
    for change in sorted(changes, key=_order):
        if change.tier == tier:
            kinds.setdefault(change.block, change.kind)
    return kinds


def change_lines(changes: Items[BlockChange]) -> list[tuple[str, str]]:
    """(kind, sentence); blocks that share a cause share a sentence: "blocks 4-7: taken by C for tokens[0:16]"."""
    lines: list[tuple[str, str]] = []
    group: list[BlockChange] = []
    for change in changes:
        if change.tier == "host" and change.kind != "dropped":
            continue  # the device block's sentence says it
        if group and not _continues(group[-1], change):
            lines.append((group[0].kind, _sentence(group)))
            group = []
        group.append(change)
    if group:
        lines.append((group[0].kind, _sentence(group)))
    return lines


def event_line(event: Event) -> str:
    """ "C preempted: A needs room for tokens[16:17]"."""
    who, cause = name(event.sequence), with_names(event.cause)
    verbs = {"admit": "admitted: ", "fork": "forked ", "wait": "waits: ", "preempt": "preempted: ", "finish": "ends: "}
    return f"{who} {verbs.get(event.kind, event.kind + ': ')}{cause}"


def what_changed(moment: Moment, changes: Items[BlockChange], theme: Theme, width: int, height: int) -> Picture:
    """The step in words: what befell sequences, then blocks, with the cause of each."""
    lines = [(theme.role("preempt"), f"error: {moment.record.error}")] if moment.record.error else []
    events = sorted(moment.record.events, key=lambda event: event.kind != "preempt")
    lines += [(theme.role("preempt" if event.kind == "preempt" else "plain"), event_line(event)) for event in events]
    lines += [
        (theme.role(kind), f"{theme.glyphs.marks[kind]} {sentence}")
        for kind, sentence in change_lines(sorted(changes, key=_order))
    ]
    room = max(height - 1, 0)
    if 1 < room < len(lines):
        more = len(lines) - room + 1
        lines = [*lines[: room - 1], (theme.role("quiet"), f"and {more} more")]
    picture = [heading(f"step {moment.record.step} in words", "", theme, width)]
    picture += [Text(theme.cut(line, width), style) for style, line in lines[:room]]
    if not lines:
        picture.append(Text("no block changed hands", theme.role("quiet")))
    return Picture(picture).fitted(width, height)


class _Step:
    """The three states of the device pool in a step: each sequence's table before, during, and after it.

    Most tables stay as they are; who holds a block besides is looked up only when a sentence says so.
    """

    def __init__(self, before: Moment | None, now: Moment) -> None:
        self.now = now
        self.size = now.header.block_size
        nodes, old_nodes = now.nodes, before.nodes if before else {}
        self.changed_nodes = [(old, nodes.get(id)) for id, old in old_nodes.items() if nodes.get(id) is not old]
        self.tables_before = {state.sequence: state.blocks for state in before.running} if before else {}
        self.tables_during = {chunk.sequence: chunk.block_table for chunk in now.record.chunks}
        self.tables_after = {state.sequence: state.blocks for state in now.running}
        self.chunks = {chunk.sequence: chunk for chunk in now.record.chunks}
        self.events = {event.sequence: event for event in now.record.events}  # the last of each
        self.copies: dict[int, int] = {}
        self.swaps_in: dict[int, int] = {}
        self.swaps_out: dict[int, int] = {}
        for operation in now.record.operations:
            match operation:
                case CopyBlock(source, destination):
                    self.copies[destination] = source
                case SwapIn(host, device):
                    self.swaps_in[device] = host
                case SwapOut(device, host):
                    self.swaps_out[device] = host
        self.gained: dict[int, dict[int, int]] = {}  # block -> who came to hold it before the forward pass, and where
        for sequence, table in self.tables_during.items():
            for place, block in _beyond(table, self.tables_before.get(sequence, ())):
                self.gained.setdefault(block, {})[sequence] = place

    @cached_property
    def was(self) -> dict[int, list[int]]:
        return _holders(self.tables_before)

    @cached_property
    def during(self) -> dict[int, list[int]]:
        return _holders(self.tables_during)

    @cached_property
    def after(self) -> dict[int, list[int]]:
        return _holders(self.tables_after)

    @cached_property
    def cached(self) -> set[int]:
        """Device blocks whose content has a node."""
        return {node.device for node in self.now.nodes.values() if node.device is not None}

    def changes(self) -> Iterable[BlockChange]:
        preempted = {sequence for sequence, event in self.events.items() if event.kind == "preempt"}
        yield from self._releases(preempted)
        yield from self._given_up()
        for block, holders in sorted(self.gained.items()):
            for sequence, place in holders.items():
                yield self._taken(block, sequence, place)
        for sequence, table in self.tables_after.items():
            known = self.tables_during.get(sequence, self.tables_before.get(sequence, ()))
            for _, block in _beyond(table, known):
                yield self._joined(block, sequence)
        yield from self._releases({*self.tables_before, *self.tables_during} - preempted)
        yield from self._on_host()

    def _releases(self, sequences: set[int]) -> Iterable[BlockChange]:
        left = []
        for sequence in sequences:
            table = self.tables_after.get(sequence, ())
            blocks = {block for _, block in _beyond(self.tables_before.get(sequence, ()), table)}
            blocks |= {block for _, block in _beyond(self.tables_during.get(sequence, ()), table)}
            left += [(block, sequence) for block in blocks]
        return (self._released(block, sequence) for block, sequence in sorted(left))

    def _given_up(self) -> Iterable[BlockChange]:
        """Device blocks whose content went to make room."""
        for old, node in self.changed_nodes:
            block = old.device
            if block is None or (node is not None and node.device == block):
                continue
            taker = _names(self.gained.get(block, ()))
            evicted = f"evicted for {taker}" if taker else "evicted"
            if block in self.swaps_out:
                lost = "" if node else ", and dropped from there in the same step"
                cause = f"{evicted}, swapped out to host {{}}{lost}"
                yield BlockChange("device", block, "swapped out", cause, self.swaps_out[block])
            elif node:
                yield BlockChange("device", block, "evicted", f"{evicted}; host {{}} has a copy", node.host)
            elif taker:
                yield BlockChange("device", block, "dropped", f"{evicted}, its content is lost")
            else:
                yield BlockChange("device", block, "dropped", "its content is forgotten")

    def _taken(self, block: int, sequence: int, place: int) -> BlockChange:
        """`sequence` came to hold it as its `place`-th block, before the forward pass."""
        who, chunk = name(sequence), self.chunks[sequence]
        end = chunk.start + chunk.num_tokens
        tokens = (place * self.size, min((place + 1) * self.size, end))
        source = self.copies.get(block)
        if source is not None:
            if source in self.tables_before.get(sequence, ()):
                others = _names(self._sharers(source, sequence))
                shared = f", shared with {others}" if others else ""
                cause = f"copied from {{}}{shared}: {who} writes on it"
            else:
                cause = f"copied from {{}} for {who}, whose tokens begin alike"
            return BlockChange("device", block, "copied", cause, source)
        if block in self.swaps_in and sequence == next(iter(self.during[block])):
            cause = f"swapped in from host {{}} for {who}"
            return BlockChange("device", block, "swapped in", cause, self.swaps_in[block])
        if chunk.start < tokens[1]:
            return BlockChange("device", block, "new", f"taken by {who} for", tokens=tokens)
        others = _names(other for other in self.during[block] if other != sequence)
        return BlockChange("device", block, "shared", f"shared by {who} with {others}" if others else f"found by {who}")

    def _sharers(self, source: int, sequence: int) -> Iterable[int]:
        """Who else held the block when `sequence` copied it: those before it have copies of their own."""
        turns = list(self.chunks)
        later = turns[turns.index(sequence) + 1 :]
        return (other for other in self.was[source] if other in later)

    def _joined(self, block: int, sequence: int) -> BlockChange:
        """`sequence` came to hold it when the step was committed."""
        who = name(sequence)
        if sequence in self.chunks:
            return BlockChange("device", block, "shared", f"shared by {who}, which computed the same tokens elsewhere")
        event = self.events.get(sequence)
        origin = with_names(event.cause) if event and event.kind == "fork" else ""
        return BlockChange("device", block, "shared", f"shared by {who}, forked {origin}".rstrip(" ,"))

    def _released(self, block: int, sequence: int) -> BlockChange:
        """`sequence` holds it no more."""
        who, event = name(sequence), self.events.get(sequence)
        table = self.tables_during.get(sequence, ())
        if any(source == block and copy in table for copy, source in self.copies.items()):
            why = f"{who} writes on its copy"
        elif event and event.kind in ("preempt", "finish", "wait"):
            why = f"{who} ends" if event.kind == "finish" else f"{who} preempted"
        else:
            why = f"{who} holds the same tokens elsewhere"
        if block in self.after:
            fate = f"{_names(self.after[block])} holds it" if len(self.after[block]) == 1 else "others hold it"
        else:
            fate = "cached" if block in self.cached else "free"
        return BlockChange("device", block, "released", f"released, {why}; {fate}")

    def _on_host(self) -> Iterable[BlockChange]:
        for device, host in self.swaps_out.items():
            yield BlockChange("host", host, "swapped out", "copy of block {}", device)
        for device, host in self.swaps_in.items():
            yield BlockChange("host", host, "swapped in", "brought back to block {}", device)
        for old, node in self.changed_nodes:
            if old.host is not None and (node is None or node.host != old.host):
                kept = node is not None and node.device is not None
                cause = "copy given up, the device has it" if kept else "dropped to make room, its content is lost"
                yield BlockChange("host", old.host, "dropped", cause)


def _order(change: BlockChange) -> tuple[int, str, str, int, int]:
    """By kind, then so that what can share a sentence stands together."""
    return (KINDS.index(change.kind), change.tier, change.cause, change.tokens[0] if change.tokens else 0, change.block)


def _beyond(table: tuple[int, ...], other: tuple[int, ...]) -> list[tuple[int, int]]:
    """(place, block) of the blocks that are in `table` and not in `other`."""
    if table == other:
        return []
    known = set(other)
    return [(place, block) for place, block in enumerate(table) if block not in known]


def _holders(tables: Mapping[int, tuple[int, ...]]) -> dict[int, list[int]]:
    """Block -> the sequences that hold it."""
    holders: dict[int, list[int]] = {}
    for sequence, blocks in tables.items():
        for block in blocks:
            holders.setdefault(block, []).append(sequence)
    return holders


def _names(sequences: Iterable[int]) -> str:
    """ "A", "A, B", "A, B and 3 more"."""
    names = [name(sequence) for sequence in sequences]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _continues(last: BlockChange, change: BlockChange) -> bool:
    same = (last.tier, last.kind, last.cause) == (change.tier, change.kind, change.cause)
    if last.tokens is None or change.tokens is None:
        return same and last.tokens is change.tokens
    return same and last.tokens[1] == change.tokens[0]


def _sentence(group: Items[BlockChange]) -> str:
    first = group[0]
    others = " ".join(str(change.other) for change in group if change.other is not None)
    cause = first.cause.replace("{}", others)
    if first.tokens and group[-1].tokens:
        cause += f" tokens[{first.tokens[0]}:{group[-1].tokens[1]}]"
    what = "host" if first.tier == "host" else "blocks" if len(group) > 1 else "block"
    return f"{what} {_numbers([change.block for change in group])}: {cause}"


def _numbers(blocks: Items[int]) -> str:
    """ "4-7 9": runs are shortened."""
    runs: list[list[int]] = []
    for block in blocks:
        if runs and runs[-1][-1] + 1 == block:
            runs[-1].append(block)
        else:
            runs.append([block])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(str(block) for block in run) for run in runs)


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: what_changed(
            history.moment(index), history.facts(index).changes, theme, width, 20
        )
    )
