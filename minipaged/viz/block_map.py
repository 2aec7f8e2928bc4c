"""The block map: both pools, block by block: who holds it, how full it is, what this step did to it.

It draws what a `Moment` and the step's changes say, and knows no more of memory than that.

Each block is a cell::

    A▅+        who: a letter, or the number of those that share it     how full     what this step did
    3█ ○█ ·    shared by three; cached and evictable; free

A pool that is larger than its panel is summarised: a cell then stands for 2, 4, 8 … blocks, and the heading says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from minipaged.trace import BlockState, Moment
from minipaged.viz.changes import KINDS, BlockChange, marks
from minipaged.viz.picture import Picture, flowed, heading
from minipaged.viz.theme import Theme, letter

MANY = "#"  # shared by ten or more
_FOLLOWED, _IN_THE_BACK, _CHOSEN = Style(bold=True, underline=True), Style(dim=True), Style(reverse=True)
_MARKED = {
    "new": "new", "shared": "one more holder", "copied": "copied", "dropped": "evicted", "swapped out": "swapped out",
    "swapped in": "swapped in", "released": "released",
}  # fmt: skip
_COLUMNS = (64, 48, 32, 24, 16, 12, 8, 4, 2, 1)


class BlockMap:
    """The map of one moment, ready to be drawn in any size.

    Args:
        moment: what to draw.
        changes: those of its step.
        theme: how.
        follow: id of the sequence whose blocks stand out.
        selected: a device block to be marked.
    """

    def __init__(
        self,
        moment: Moment,
        changes: Items[BlockChange],
        theme: Theme,
        *,
        follow: int | None = None,
        selected: int | None = None,
    ) -> None:
        self._moment = moment
        self._theme = theme
        self._following = follow is not None
        self._selected = selected
        self._device = [_device_cell(block, moment.header.block_size, theme, follow) for block in moment.device_blocks]
        self._host = [_host_cell(node, moment, theme) for node in moment.host_blocks]
        self._device_kinds = marks(changes, "device")
        self._host_kinds = marks(changes, "host")

    def draw(self, width: int, height: int) -> Picture:
        """Both pools in at most so many cells, and what their signs mean: all of it, unless that costs detail; else, on
        one line, what there is to be seen.
        """
        header, theme = self._moment.header, self._theme
        pools = header.num_blocks, header.num_host_blocks
        legend = _legend(theme, width, header.num_host_blocks > 0)
        rows = height - _num_headings(header.num_host_blocks)
        shape = _layout(width, rows - 1, *pools)
        with_legend = _layout(width, rows - len(legend), *pools)
        if with_legend[-1] == shape[-1] and _num_rows(with_legend, *pools) + len(legend) <= rows:
            shape = with_legend
        else:
            legend = flowed(self._signs(is_summarised=shape[-1] > 1), width)[:1]
        grid = _Grid(theme, len(str(max(pools) - 1)), *shape, self._following)
        summary = f", {grid.per_cell} blocks per cell" if grid.per_cell > 1 else ""
        lines = [heading("device pool" + summary, _device_facts(self._moment), theme, width)]
        lines += grid.rows(self._device, self._device_kinds, self._selected)
        if self._host:
            lines.append(heading("host pool" + summary, _host_facts(self._moment), theme, width))
            lines += grid.rows(self._host, self._host_kinds, None)
        return Picture([*lines, *legend]).fitted(width, height)

    def _signs(self, is_summarised: bool) -> list[Text]:
        """Those that are on the map, what changed first."""
        glyphs = self._theme.glyphs
        states = {cell.who for cell in (*self._device, *self._host)}
        seen = {glyphs.marks[kind] for kind in (*self._device_kinds.values(), *self._host_kinds.values())} | states
        if any(state.isdigit() for state in states):
            seen.add("2")
        if any(state.isalpha() for state in states):
            seen |= {"A", _levels(self._theme)}
        if is_summarised:
            seen.add(glyphs.mixed)
        signs, first = _all_signs(self._theme), -len(_MARKED)
        return [_sign(sign, self._theme) for sign in (*signs[first:], *signs[:first]) if sign[0] in seen]


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
    """A `BlockMap`, drawn once."""
    return BlockMap(moment, changes, theme, follow=follow, selected=selected).draw(width, height)


def map_lines(
    num_blocks: int, num_host_blocks: int, theme: Theme, width: int, most: int, *, is_brief: bool = False
) -> int:
    """Lines that a map wants, of at most so many: for a cell a block, far apart, with all of the legend (or one line of
    it); else for as much of that as there is room for.
    """
    legend = 1 if is_brief else len(_legend(theme, width, num_host_blocks > 0))
    room = num_blocks + num_host_blocks
    for cell_width, signs in ((4, legend), (3, legend), (3, 1)):
        shape = _layout(width, room, num_blocks, num_host_blocks, cell_widths=(cell_width,))
        lines = _num_rows(shape, num_blocks, num_host_blocks) + _num_headings(num_host_blocks) + signs
        if lines <= most:
            return lines
    return most


def _num_headings(num_host_blocks: int) -> int:
    return 2 if num_host_blocks else 1


def _layout(
    width: int, rows: int, num_blocks: int, num_host_blocks: int, cell_widths: tuple[int, ...] = (4, 3)
) -> tuple[int, int, int]:
    """(cells in a row, width of a cell, blocks in a cell): the most spacious in which both pools fit."""
    label = len(str(max(num_blocks, num_host_blocks) - 1)) + 1
    per_cell = 1
    while True:
        for cell_width in cell_widths:
            columns = next(n for n in _COLUMNS if n * cell_width <= width - label or n == 1)
            shape = columns, cell_width, per_cell
            if _num_rows(shape, num_blocks, num_host_blocks) <= rows:
                return shape
        if per_cell * columns >= max(num_blocks, num_host_blocks):
            return columns, 3, per_cell
        per_cell *= 2


def _num_rows(shape: tuple[int, int, int], num_blocks: int, num_host_blocks: int) -> int:
    """Of both pools together."""
    columns, _, per_cell = shape
    return -(-num_blocks // (columns * per_cell)) + -(-num_host_blocks // (columns * per_cell))


@dataclass(frozen=True, slots=True)
class _Cell:
    """What is drawn of a block.

    Args:
        who: one character.
        num_filled: how full, of so many slots as all blocks have.
        state: who holds it, or how it is when nobody does: blocks of one state share a cell's letter.
        style: of both characters.
        followed: whether it stands out while a sequence is followed.
    """

    who: str
    num_filled: int
    num_slots: int
    state: str | tuple[int, ...]
    style: Style
    followed: bool = False


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells in rows, with the number of the first block at the left edge."""

    theme: Theme
    label: int
    columns: int
    cell_width: int
    per_cell: int
    following: bool

    def rows(self, cells: Items[_Cell], kinds: Mapping[int, str], selected: int | None) -> list[Text]:
        size, first_ones = self.per_cell, range(0, len(cells), self.per_cell)
        shown = cells if size == 1 else [_joined(cells[i : i + size], self.theme) for i in first_ones]
        marked: dict[int, str] = {}
        for block in sorted(kinds, key=lambda block: KINDS.index(kinds[block])):
            marked.setdefault(block // size, kinds[block])
        chosen = None if selected is None else selected // size
        lines = []
        for first in range(0, len(shown), self.columns):
            line = Text.assemble((f"{first * size:{self.label}d} ", self.theme.role("quiet")))
            for i, cell in enumerate(shown[first : first + self.columns], first):
                self._draw(line, cell, marked.get(i), i == chosen)
            line.rstrip()
            lines.append(line)
        return lines

    def _draw(self, line: Text, cell: _Cell, kind: str | None, chosen: bool) -> None:
        style = cell.style
        if self.following:
            style = style + (_FOLLOWED if cell.followed else _IN_THE_BACK)
        fill = " " if cell.state == "free" else self.theme.fill(cell.num_filled, cell.num_slots)
        line.append(cell.who + fill, style + _CHOSEN if chosen else style)
        if kind:
            line.append(self.theme.glyphs.marks[kind], self.theme.role(kind))
        line.append(" " * (self.cell_width - 2 - bool(kind)))


def _joined(cells: Items[_Cell], theme: Theme) -> _Cell:
    """One cell for several blocks: what they have in common, but for free ones; how full they are together."""
    used = [cell for cell in cells if cell.state != "free"] or cells[:1]
    num_filled, num_slots = sum(cell.num_filled for cell in cells), sum(cell.num_slots for cell in cells)
    followed = any(cell.followed for cell in cells)
    if len({cell.state for cell in used}) == 1:
        return _Cell(used[0].who, num_filled, num_slots, used[0].state, used[0].style, followed)
    return _Cell(theme.glyphs.mixed, num_filled, num_slots, "mixed", theme.role("plain"), followed)


def _device_cell(block: BlockState, size: int, theme: Theme, follow: int | None) -> _Cell:
    holders = block.holders
    if not holders:
        state = "free" if block.node is None else "evictable"
        who = theme.glyphs.free if block.node is None else theme.glyphs.evictable
        return _Cell(who, block.fill, size, state, theme.role(state))
    if len(holders) == 1:
        return _Cell(letter(holders[0]), block.fill, size, holders, theme.owner(holders[0]), holders[0] == follow)
    count = str(len(holders)) if len(holders) < 10 else MANY
    return _Cell(count, block.fill, size, holders, theme.role("shared"), follow in holders)


def _host_cell(node: int | None, moment: Moment, theme: Theme) -> _Cell:
    size = moment.header.block_size
    if node is None:
        return _Cell(theme.glyphs.free, 0, size, "free", theme.role("free"))
    if moment.nodes[node].device is None:
        return _Cell(theme.glyphs.sole, size, size, "sole", theme.role("plain"))
    return _Cell(theme.glyphs.clean, size, size, "clean", theme.role("evictable"))


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
    """All signs, but for those of a host pool where there is none, and that of cells for several blocks."""
    glyphs = theme.glyphs
    left_out = {glyphs.mixed}
    if not has_host:
        left_out |= {glyphs.sole, glyphs.clean, glyphs.marks["swapped out"], glyphs.marks["swapped in"]}
    return flowed([_sign(sign, theme) for sign in _all_signs(theme) if sign[0] not in left_out], width)


def _all_signs(theme: Theme) -> list[tuple[str, str, str]]:
    """(sign, role, what it means), the marks of `_MARKED` last."""
    glyphs = theme.glyphs
    return [
        ("A", "plain", "owner"), ("2", "shared", "shared by 2"), (_levels(theme), "plain", "how full"),
        (glyphs.mixed, "plain", "of several owners"),
        (glyphs.evictable, "evictable", "cached, evictable"), (glyphs.free, "free", "free"),
        (glyphs.sole, "plain", "only on the host"), (glyphs.clean, "evictable", "on the device too"),
        *((glyphs.marks[kind], kind, words) for kind, words in _MARKED.items()),
    ]  # fmt: skip


def _levels(theme: Theme) -> str:
    fill = theme.glyphs.fill
    return fill[1] + fill[len(fill) // 2] + fill[-1]


def _sign(sign: tuple[str, str, str], theme: Theme) -> Text:
    glyph, role, words = sign
    return Text.assemble((glyph, theme.role(role)), (f" {words}", theme.role("quiet")))


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: block_map(
            history.moment(index), history.facts(index).changes, theme, width, 20
        )
    )
