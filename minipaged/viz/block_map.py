"""The block map: both pools, block by block: who holds it, how full it is, what this step did to it.

It draws what a `Moment` and the step's changes say, and knows no more of memory than that.

Each block is a cell::

    A▅+        who: a letter, or the number of those that share it     how full     what this step did
    3█ ○█ ·    shared by three; cached and evictable; free

A pool that is larger than its panel is summarised: a cell then stands for 2, 4, 8 … blocks, and the heading says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from minipaged.trace import BlockState, Moment
from minipaged.viz.changes import KINDS, BlockChange, marks
from minipaged.viz.picture import Picture, flowed, heading
from minipaged.viz.theme import Theme, letter

MANY = "#"  # shared by ten or more
_COLUMNS = (64, 48, 32, 24, 16, 12, 8, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class Cell:
    """What is drawn of a block, or of several.

    Args:
        who: one character.
        num_filled, num_slots: how full.
        style: of both.
        kind: what this step did, or None.
    """

    who: str
    num_filled: int
    num_slots: int
    style: Style
    kind: str | None = None


def block_map(
    moment: Moment,
    changes: Items[BlockChange],
    theme: Theme,
    width: int,
    height: int,
    *,
    follow: int | None = None,
    selected: int | None = None,
) -> Picture:
    """Both pools and the legend.

    Args:
        moment: what to draw.
        changes: those of its step.
        theme: how.
        width, height: what it takes at most. The legend gets what the pools leave.
        follow: id of the sequence whose blocks stand out.
        selected: a device block to be marked.
    """
    header = moment.header
    legend = _legend(theme, width, header.num_host_blocks > 0)
    rows = height - (2 if header.num_host_blocks else 1)
    shape = _layout(width, rows, header.num_blocks, header.num_host_blocks)
    if shape[-1] > 1:  # summarised anyway: a legend first, unless that would cost detail
        with_legend = _layout(width, rows - len(legend), header.num_blocks, header.num_host_blocks)
        shape = with_legend if with_legend[-1] == shape[-1] else shape
    columns, cell_width, per_cell = shape
    device = [_device_cell(block, moment, theme, follow) for block in moment.device_blocks]
    summary = f", {per_cell} blocks per cell" if per_cell > 1 else ""
    lines = [heading("device pool" + summary, _device_facts(moment), theme, width)]
    label = len(str(max(header.num_blocks, header.num_host_blocks) - 1))
    grid = _Grid(theme, label, columns, cell_width, per_cell)
    lines += grid.rows(device, marks(changes, "device"), selected)
    if header.num_host_blocks:
        host = [_host_cell(node, moment, theme) for node in moment.host_blocks]
        lines.append(heading("host pool" + summary, _host_facts(moment), theme, width))
        lines += grid.rows(host, marks(changes, "host"), None)
    return Picture([*lines, *legend]).fitted(width, height)


def unsummarised_lines(num_blocks: int, num_host_blocks: int, width: int) -> int:
    """Lines in which a map has a cell for each block, without its legend."""
    columns, _, _ = _layout(width, num_blocks + num_host_blocks, num_blocks, num_host_blocks, cell_widths=(3,))
    rows = -(-num_blocks // columns) + -(-num_host_blocks // columns)
    return rows + (2 if num_host_blocks else 1)


def _layout(
    width: int, rows: int, num_blocks: int, num_host_blocks: int, cell_widths: tuple[int, ...] = (4, 3)
) -> tuple[int, int, int]:
    """(cells in a row, width of a cell, blocks in a cell): the most spacious in which both pools fit."""
    label = len(str(max(num_blocks, num_host_blocks) - 1)) + 1
    per_cell = 1
    while True:
        for cell_width in cell_widths:
            columns = next(n for n in _COLUMNS if n * cell_width <= width - label or n == 1)
            if -(-num_blocks // (columns * per_cell)) + -(-num_host_blocks // (columns * per_cell)) <= rows:
                return columns, cell_width, per_cell
        if per_cell * columns >= max(num_blocks, num_host_blocks):
            return columns, 3, per_cell
        per_cell *= 2


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells in rows, with the number of the first block at the left edge."""

    theme: Theme
    label: int
    columns: int
    cell_width: int
    per_cell: int

    def rows(self, cells: Items[Cell], kinds: Mapping[int, str], selected: int | None) -> list[Text]:
        shown = [self._joined(cells[i : i + self.per_cell], kinds, i) for i in range(0, len(cells), self.per_cell)]
        chosen = None if selected is None else selected // self.per_cell
        lines = []
        for first in range(0, len(shown), self.columns):
            line = Text.assemble((f"{first * self.per_cell:{self.label}d} ", self.theme.role("quiet")))
            for i, cell in enumerate(shown[first : first + self.columns], first):
                self._draw(line, cell, i == chosen)
            line.rstrip()
            lines.append(line)
        return lines

    def _draw(self, line: Text, cell: Cell, chosen: bool) -> None:
        style = cell.style + Style(reverse=True) if chosen else cell.style
        fill = " " if cell.who == self.theme.glyphs.free else self.theme.fill(cell.num_filled, cell.num_slots)
        line.append(cell.who + fill, style)
        line.append(self.theme.glyphs.marks[cell.kind] if cell.kind else " ", self.theme.role(cell.kind or "plain"))
        line.append(" " * (self.cell_width - 3))

    def _joined(self, cells: Items[Cell], kinds: Mapping[int, str], first: int) -> Cell:
        """One cell for several blocks: their common owner or state, else `mixed`; how full they are together."""
        kind = min((kinds[i] for i in range(first, first + len(cells)) if i in kinds), key=KINDS.index, default=None)
        glyphs = self.theme.glyphs
        free = cells[0] if all(cell.who == glyphs.free for cell in cells) else None
        used = [cell for cell in cells if cell.who != glyphs.free]
        common = free or (used[0] if len({(cell.who, cell.style) for cell in used}) == 1 else None)
        num_filled, num_slots = sum(cell.num_filled for cell in cells), sum(cell.num_slots for cell in cells)
        if common is None:
            return Cell(glyphs.mixed, num_filled, num_slots, Style(), kind)
        return Cell(common.who, num_filled, num_slots, common.style, kind)


def _device_cell(block: BlockState, moment: Moment, theme: Theme, follow: int | None) -> Cell:
    size = moment.header.block_size
    if not block.holders:
        state = "free" if block.node is None else "evictable"
        who = theme.glyphs.free if block.node is None else theme.glyphs.evictable
        return Cell(who, block.fill, size, theme.role(state))
    if len(block.holders) == 1:
        who, style = letter(block.holders[0]), theme.owner(block.holders[0])
    else:
        who, style = str(len(block.holders)) if len(block.holders) < 10 else MANY, theme.role("shared")
    if follow is not None:
        style = style + (Style(bold=True, underline=True) if follow in block.holders else Style(dim=True))
    return Cell(who, block.fill, size, style)


def _host_cell(node: int | None, moment: Moment, theme: Theme) -> Cell:
    size = moment.header.block_size
    if node is None:
        return Cell(theme.glyphs.free, 0, size, theme.role("free"))
    if moment.nodes[node].device is None:
        return Cell(theme.glyphs.sole, size, size, theme.role("plain"))
    return Cell(theme.glyphs.clean, size, size, theme.role("evictable"))


def _device_facts(moment: Moment) -> tuple[str, ...]:
    blocks = moment.device_blocks
    held = sum(bool(block.holders) for block in blocks)
    shared = sum(len(block.holders) > 1 for block in blocks)
    evictable = sum(not block.holders and block.node is not None for block in blocks)
    free = len(blocks) - held - evictable
    long = f"{held} held ({shared} shared), {evictable} cached, {free} free of {len(blocks)}"
    return long, f"{held} held, {evictable} cached, {free} free", f"{held} held"


def _host_facts(moment: Moment) -> tuple[str, ...]:
    nodes = [moment.nodes[node] for node in moment.host_blocks if node is not None]
    sole = sum(node.device is None for node in nodes)
    total = len(moment.host_blocks)
    long = f"{sole} only here, {len(nodes) - sole} on the device too, {total - len(nodes)} free of {total}"
    return long, f"{len(nodes)} held, {total - len(nodes)} free"


def _legend(theme: Theme, width: int, has_host: bool) -> list[Text]:
    glyphs = theme.glyphs
    say: Callable[[str, str, str], Text] = lambda sign, role, words: Text.assemble(  # noqa: E731
        (sign, theme.role(role)), (f" {words}", theme.role("quiet"))
    )
    items = [
        say("A", "plain", "owner"),
        say("2", "shared", "shared by 2"),
        say(glyphs.fill[1] + glyphs.fill[4] + glyphs.fill[-1], "plain", "how full"),
        say(glyphs.evictable, "evictable", "cached, evictable"),
        say(glyphs.free, "free", "free"),
    ]
    if has_host:
        items += [say(glyphs.sole, "plain", "only on the host"), say(glyphs.clean, "evictable", "on the device too")]
    for kind, words in (
        ("new", "new"), ("shared", "one more holder"), ("copied", "copied"), ("evicted", "evicted"),
        ("swapped out", "swapped out"), ("swapped in", "swapped in"), ("released", "released"),
    ):  # fmt: skip
        if has_host or not kind.startswith("swapped"):
            items.append(say(glyphs.marks[kind], kind, words))
    return flowed(items, width)


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: block_map(
            history.moment(index), history.facts(index).changes, theme, width, 20
        )
    )
