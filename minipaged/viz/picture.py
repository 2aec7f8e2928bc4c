"""Picture: lines for a terminal, which can be cut to a size, put below and beside each other, and never wrap.

Knows no record: it is the paper that the others draw on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from minipaged.viz.theme import Theme


class Picture:
    """Some lines. A rich renderable that takes exactly as many lines as it has, whatever the console's width."""

    def __init__(self, lines: Iterable[Text] = ()) -> None:
        self.lines = list(lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Text]:
        return iter(self.lines)

    def __add__(self, below: Picture) -> Picture:
        return Picture([*self.lines, *below.lines])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines:
            shown = line.copy()
            shown.no_wrap, shown.overflow = True, "crop"
            yield shown

    @property
    def plain(self) -> str:
        """Without any style."""
        return "\n".join(line.plain.rstrip() for line in self.lines) + "\n"

    def fitted(self, width: int, height: int, *, pad: bool = False) -> Picture:
        """Cut to a size; with `pad`, filled up to it."""
        lines = []
        for line in self.lines[:height]:
            shown = line.copy()
            shown.truncate(width, overflow="crop", pad=pad)
            lines.append(shown)
        if pad:
            lines += [Text(" " * width) for _ in range(height - len(lines))]
        return Picture(lines)

    def beside(self, right: Picture, width: int, gap: str = " ") -> Picture:
        """`right` at the right of this picture, which gets `width` cells."""
        height = max(len(self), len(right))
        left = self.fitted(width, height, pad=True)
        rest = [*right.lines, *(Text() for _ in range(height - len(right)))]
        return Picture(Text.assemble(a, gap, b) for a, b in zip(left.lines, rest, strict=True))


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a column.

    Args:
        draw: called with the lines that it may take; it may take fewer.
        least: lines below which it is left out rather than cut further.
    """

    draw: Callable[[int], Picture]
    least: int = 1


def stacked(sections: Items[Section], height: int) -> Picture:
    """Sections below each other in at most `height` lines.

    Each gets its least, the first ones first, as far as it goes; the rest is dealt out in turns.
    """
    drawn = [section.draw(height) for section in sections]
    wanted = [len(picture) for picture in drawn]
    given = [0] * len(sections)
    left = height
    for i, section in enumerate(sections):
        if min(section.least, wanted[i]) <= left:
            given[i] = min(section.least, wanted[i])
            left -= given[i]
    while left:
        hungry = [i for i, lines in enumerate(given) if 0 < lines < wanted[i]][:left]
        if not hungry:
            break
        for i in hungry:
            given[i] += 1
        left -= len(hungry)
    parts = [
        drawn[i] if lines == wanted[i] else section.draw(lines)
        for i, (section, lines) in enumerate(zip(sections, given, strict=True))
        if lines
    ]
    return Picture(line for part in parts for line in part)


def flowed(items: Iterable[Text], width: int, gap: str = "  ") -> list[Text]:
    """Items one after the other, on as many lines as it takes; none is broken, one that is too wide is cut."""
    lines: list[Text] = []
    for item in items:
        if lines and lines[-1].cell_len + len(gap) + item.cell_len <= width:
            lines[-1].append(gap).append_text(item)
        else:
            lines.append(item.copy())
    return Picture(lines).fitted(width, len(lines)).lines


def heading(title: str, facts: str | Items[str], theme: Theme, width: int) -> Text:
    """A line that begins a section: its name, a rule, and its most important numbers at the right.

    Args:
        title: is cut only when it is wider than the line.
        facts: of several wordings, the first that fits is taken, else none.
        theme: how things look.
        width: of the line.
    """
    title = theme.cut(title, width)
    room = width - cell_len(title) - 4  # a space, a rule of two, a space
    wordings = [theme.text(facts)] if isinstance(facts, str) else [theme.text(wording) for wording in facts]
    shown = next((wording for wording in wordings if wording and cell_len(wording) <= room), "")
    rule = width - cell_len(title) - 1 - (cell_len(shown) + 1 if shown else 0)
    line = Text.assemble((title, theme.role("title")), " ", (theme.glyphs.rule * max(rule, 0), theme.role("quiet")))
    line.append(f" {shown}" if shown else "")
    return Picture([line]).fitted(width, 1).lines[0]


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: Picture(
            [
                heading("left", ("facts at the right, when there is room", "facts"), theme, 40),
                *flowed(map(Text, "abc"), 40),
            ]
        ).beside(Picture([heading("right", "", theme, 20), Text("a line")]), 40, f" {theme.glyphs.wall} ")
    )
