"""Who runs, with which blocks, and who waits, for what.

    A  0→12 1→7 2→31 (3/16)     logical block 0 lies in physical block 12 …; of the last block, 3 slots of 16 are filled

It draws a `Moment` and knows no more of scheduling than the causes that the record gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from minipaged.trace import Moment, SequenceState
from minipaged.viz.changes import BlockChange, marks
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, many, name


def block_tables(
    moment: Moment,
    changes: Items[BlockChange],
    theme: Theme,
    width: int,
    height: int,
    *,
    follow: int | None = None,
) -> Picture:
    """The running sequences and their block tables, oldest first; the one that is followed is always shown."""
    facts = f"{len(moment.running)} running of at most {moment.header.max_sequences}"
    kinds = marks(changes, "device")
    shared = {block.block for block in moment.device_blocks if len(block.holders) > 1}

    def line(state: SequenceState) -> Text:
        return _table(moment, state, shared, kinds, theme, width)

    return _listed("block tables", facts, moment.running, line, theme, width, height, follow)


def queue(moment: Moment, theme: Theme, width: int, height: int, *, follow: int | None = None) -> Picture:
    """The waiting sequences in the order in which they will be admitted, and what each waits for."""

    def line(state: SequenceState) -> Text:
        first = moment.waiting[0]
        text = Text.assemble((f"{name(state.sequence):2} ", theme.owner(state.sequence) + Style(bold=True)))
        if state.num_preemptions:
            text.append(f"preempted {state.num_preemptions}{theme.glyphs.times}, ", theme.role("warning"))
        causes = _causes(moment, state) if state is first else (f"behind {name(first.sequence)}",)
        text.append(next((cause for cause in causes if text.cell_len + cell_len(cause) <= width), causes[-1]))
        return _with_facts(text, state, theme, width)

    return _listed("queue", f"{len(moment.waiting)} waiting", moment.waiting, line, theme, width, height, follow)


def _listed(
    title: str,
    facts: str,
    states: Items[SequenceState],
    line: Callable[[SequenceState], Text],
    theme: Theme,
    width: int,
    height: int,
    follow: int | None,
) -> Picture:
    """A heading, and a line for each as far as there is room; for the one that is followed there always is."""
    shown = list(states[: max(height - 1, 0)])
    followed = next((state for state in states if state.sequence == follow), None)
    if followed is not None and followed not in shown and shown:
        shown[-1] = followed
    facts += f", {len(shown)} shown" if len(shown) < len(states) else ""
    lines = [heading(title, facts, theme, width), *(line(state) for state in shown)]
    if follow is not None:
        for text, state in zip(lines[1:], shown, strict=False):
            text.stylize(Style(bold=True) if state.sequence == follow else Style(dim=True))
    return Picture(lines).fitted(width, height)


def _table(
    moment: Moment, state: SequenceState, shared: set[int], kinds: Mapping[int, str], theme: Theme, width: int
) -> Text:
    size = moment.header.block_size
    line = Text.assemble((f"{name(state.sequence):2}", theme.owner(state.sequence) + Style(bold=True)))
    last_fill = state.num_computed - (len(state.blocks) - 1) * size
    end = f" ({last_fill}/{size})" if state.blocks else " no blocks"

    def pair(logical: int) -> Text:
        block = state.blocks[logical]
        text = Text.assemble((f" {logical}{theme.glyphs.arrow}", theme.role("quiet")))
        text.append(str(block), theme.role("shared") if block in shared else theme.owner(state.sequence))
        if block in kinds:
            text.append(theme.glyphs.marks[kinds[block]], theme.role(kinds[block]))
        return text

    pairs = _as_fit(pair, len(state.blocks), width - line.cell_len - len(end), theme)
    return _with_facts(Text.assemble(line, *pairs, end), state, theme, width)


def _as_fit(pair: Callable[[int], Text], num_pairs: int, room: int, theme: Theme) -> list[Text]:
    """All of a table; when that is too long, its first block and its last ones."""
    if 4 * num_pairs <= room:  # a pair takes four cells at least
        pairs = [pair(logical) for logical in range(num_pairs)]
        if sum(text.cell_len for text in pairs) <= room:
            return pairs
    head = [pair(0), Text(f" {theme.glyphs.cut}", theme.role("quiet"))]
    room -= sum(text.cell_len for text in head)
    tail: list[Text] = []
    for logical in range(num_pairs - 1, 0, -1):
        tail.append(pair(logical))
        room -= tail[-1].cell_len
        if room < 0:
            tail.pop()
            break
    return [*head, *reversed(tail)]


def _causes(moment: Moment, state: SequenceState) -> tuple[str, ...]:
    """Why the first that waits does so, in ever fewer words."""
    header, cause = moment.header, moment.record.waiting_cause
    match cause:
        case "no blocks":
            need = -(-state.num_tokens // header.block_size)
            free = moment.counts["free_blocks"] + moment.counts["evictable_blocks"]
            return (
                f"no blocks: needs up to {need}, {free} can be had now",
                f"needs up to {many(need, 'block')}, {free} to be had",
                f"{many(need, 'block')} needed, {free} left",
            )
        case "no budget":
            return f"no budget: the step's {header.max_batch_tokens} tokens were given out", "no token left in the step"
        case "no place":
            return f"no place: {header.max_sequences} sequences run at most", "no place left"
        case None:
            return "came when the step was planned", "just came"
    return cause, "memory too small" if "memory" in cause else cause


def _with_facts(line: Text, state: SequenceState, theme: Theme, width: int) -> Text:
    """Behind the line, as far as there is room: tokens of prompt and answer, and the title."""
    size = f"  {state.num_prompt}+{state.num_tokens - state.num_prompt} tokens"
    if line.cell_len + len(size) <= width:
        line.append(size, theme.role("quiet"))
        room = width - line.cell_len - 2
        if state.title and room >= min(8, cell_len(state.title)):  # a shorter piece of a title says nothing
            line.append(f"  {theme.cut(state.title, room)}", theme.role("quiet"))
    elif line.cell_len > width:
        line.truncate(max(width - 1, 0), overflow="crop")
        line.append(theme.glyphs.cut, theme.role("quiet"))
    return line


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: (
            block_tables(history.moment(index), history.facts(index).changes, theme, width, 10)
            + queue(history.moment(index), theme, width, 10)
        )
    )
