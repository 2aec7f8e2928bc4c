"""Diagram: the paper on which the lives of a request, a block and a step are drawn, as SVG.

It knows lanes, states, rows that are links, and arrows, and nothing of what they mean: `life_diagrams.py` says that.
The pictures are narrow, so that a telephone shows them without zooming, and ask nobody for a font. Their colours follow
the reader's light or dark screen; within the site (where the hook adds the class `in-page`) they follow the site's.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

WIDTH = 400  # units; a phone shows a little less than one pixel for each
MARGIN = 12
ROW = 44  # a row that is a link is as high as a finger is wide
HEAD = 30  # of a lane
STATE = 54  # a state without rows
SANS, CODE, SMALL, TITLE = 14.0, 13.5, 13.0, 16.0  # font sizes, in units

STYLE = """
.diagram { --paper: #ffffff; --ink: #1f2933; --quiet: #55616d; --line: #7b8793;
  --bookkeeping: #2f6db5; --plan: #0c7f70; --tensors: #b8500f; --people: #6f629c;
  --green: #2a7d38; --cyan: #0b7585; --red: #bd3434; --magenta: #9440b4; --blue: #2a63b8; --yellow: #7d6000;
  --held: #2aa5d8; }
@media (prefers-color-scheme: dark) { .diagram:not(.in-page) { --paper: #14191f; --ink: #e4e9ee; --quiet: #a9b4bf;
  --line: #8592a0; --bookkeeping: #6aa7ec; --plan: #4cc4b0; --tensors: #f0995c; --people: #b5a8dc; --green: #7ec878;
  --cyan: #5fc8c8; --red: #eb6f6e; --magenta: #c88cdc; --blue: #6ea0f0; --yellow: #e8c468; } }
[data-md-color-scheme="slate"] .diagram { --paper: none; --ink: var(--md-default-fg-color, #e4e9ee); --quiet: #a9b4bf;
  --line: #8592a0; --bookkeeping: #6aa7ec; --plan: #4cc4b0; --tensors: #f0995c; --people: #b5a8dc; --green: #7ec878;
  --cyan: #5fc8c8; --red: #eb6f6e; --magenta: #c88cdc; --blue: #6ea0f0; --yellow: #e8c468; }
.diagram.in-page { --paper: none; --ink: var(--md-default-fg-color, #1f2933); display: block; margin: 1em auto;
  width: 100%; max-width: 480px; height: auto; }
.diagram text { font-family: -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  fill: var(--ink); font-size: 14px; }
.diagram .code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13.5px; }
.diagram .title { font-size: 16px; font-weight: 600; }
.diagram .quiet { font-size: 13px; fill: var(--quiet); }
.diagram .head, .diagram .name, .diagram .mark { font-weight: 600; }
.diagram .mark { font-size: 16px; }
.diagram .paper { fill: var(--paper); }
.diagram .lane { fill-opacity: 0.09; stroke-opacity: 0.55; }
.diagram .state { fill: var(--ink); fill-opacity: 0.05; stroke: var(--line); stroke-width: 1.5; }
.diagram .pending { stroke-dasharray: 5 4; }
.diagram .hit { fill: transparent; stroke: none; }
.diagram a { cursor: pointer; outline: none; }
.diagram a .code, .diagram a .name, .diagram a .title { text-decoration: underline; text-decoration-thickness: 1px;
  text-underline-offset: 3px; }
.diagram a:hover .hit, .diagram a:focus-visible .hit { fill: var(--ink); fill-opacity: 0.09; }
.diagram a:focus-visible .hit { stroke: var(--ink); stroke-width: 2; }
.diagram .arrow { fill: none; stroke-width: 2; }
.diagram .slot { stroke: var(--line); stroke-width: 1; fill: none; }
.diagram .slot.full { fill: var(--held); }
.diagram .slot.kept { fill: var(--held); fill-opacity: 0.35; }
"""
# Advance widths in thousandths of the font size; other characters are taken for wide ones.
_WIDTHS = {
    letter: width
    for letters, width in (
        ("ijlI'", 300), (" ,.", 320), (":;|", 340), ("f", 355), ("()[]-−", 395), ("rt", 415), ("J", 300), ("sz", 530),
        ("ckLvxyFT", 600), ("aeoYZ", 620), ("bdghnpquXKABCEPSV0123456789·_", 690), ("NDUHRG", 770), ("OQw", 820),
    )
    for letter in letters
}  # fmt: skip


def text_width(text: str, size: float, *, code: bool = False, bold: bool = False) -> float:
    """Units that a text takes at most, by the widths of DejaVu, which is the widest of the fonts that are asked for."""
    total = 0.0
    for c in text:
        if ord(c) > 0x2E80:
            total += 1.0
        elif code:
            total += 0.603
        else:
            total += _WIDTHS.get(c, 1000) / 1000
    return total * size * (1.08 if bold else 1.0)


class Row(NamedTuple):
    """One link. A name with a blank in it is set as words, not as code.

    Args:
        name: of what is called, or what is the case.
        says: what it does, or what comes of it.
        href: where it leads, relative to docs/assets.
        mark: the mark that the pictures of `minipaged watch` have for it.
        colour: of the mark; without one, of a stripe at the left.
        depth: how far it is set in, being a part of the one before.
    """

    name: str
    says: str
    href: str
    mark: str = ""
    colour: str = "ink"
    depth: int = 0


class Diagram:
    """Parts are drawn from top to bottom; `height` is how far the lowest has come.

    Args:
        name: of the file, and the beginning of its ids.
        title: what it shows, in a few words.
        description: what is seen, for who does not see it.

    Raises:
        ValueError: a text that would not fit where it is to be.
    """

    def __init__(self, name: str, title: str, description: str) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.height = 0.0
        self._parts: list[str] = []

    # What is drawn ---------------------------------------------------------------------------------------------------

    def lane(
        self,
        y: float,
        kind: str,
        title: str,
        rows: Iterable[Row],
        tag: str = "",
        *,
        x: float = MARGIN,
        width: float = WIDTH - 2 * MARGIN,
    ) -> float:
        """A room of the house, in its colour, with a heading, a quiet word at its right, and rows.

        Returns:
            Where it ends.
        """
        rows = list(rows)
        height = HEAD + len(rows) * ROW + 2
        self._rect(x, y, width, height, "lane", f"fill: var(--{kind}); stroke: var(--{kind})", radius=6)
        self._rect(x, y, 5, height, "", f"fill: var(--{kind})", radius=2)
        self._text(x + 14, y + 20, title, "head", room=width - 18, style=f"fill: var(--{kind})")
        if tag:
            self._text(x + width - 8, y + 20, tag, "quiet", room=width - 18, anchor="end")
        for i, row in enumerate(rows):
            self.row(x + 8, y + HEAD + i * ROW, width - 16, row)
        return y + height

    def state(
        self,
        y: float,
        title: str,
        says: str,
        href: str,
        rows: Iterable[Row] = (),
        *,
        x: float = 52,
        width: float = 296,
        kind: str = "",
        block: tuple[int, str] | None = None,
    ) -> float:
        """A state: a box with a name and a line below it, and perhaps rows.

        Args:
            y: its upper edge.
            title: its name.
            says: what is so in it.
            href: where the name leads.
            rows: what can happen in it.
            x, width: left edge and width.
            kind: "pending" for a broken line.
            block: a block in that state: slots filled, and "full" or "kept".

        Returns:
            Where it ends.
        """
        rows = list(rows)
        height = STATE + len(rows) * ROW
        self._rect(x, y, width, height, f"state {kind}".strip(), radius=9)
        self._parts.append(f'<a href="{escape(href)}">')
        self._rect(x, y, width, STATE, "hit", radius=9)
        self._text(x + 14, y + 23, title, "title", room=width - 20 - (70 if block else 0))
        self._text(x + 14, y + 43, says, "quiet", room=width - 20)
        self._parts.append("</a>")
        if block:
            self._slots(x + width - 72, y + 10, *block)
        for i, row in enumerate(rows):
            self.row(x + 8, y + STATE - 2 + i * ROW, width - 16, row)
        return y + height

    def row(self, x: float, y: float, width: float, row: Row) -> None:
        """A name in the code, and what it does; all of it is one link."""
        self._parts.append(f'<a href="{escape(row.href)}">')
        self._rect(x, y, width, ROW - 2, "hit", radius=5)
        left = x + 6 + 16 * row.depth
        if row.mark:
            self._text(left, y + 17, row.mark, "mark", room=20, style=f"fill: var(--{row.colour})")
            left += 20
        elif row.colour != "ink":
            self._rect(left, y + 5, 5, ROW - 12, "", f"fill: var(--{row.colour})", radius=2)
            left += 14
        self._text(left, y + 17, row.name, "name" if " " in row.name else "code", room=x + width - left)
        self._text(left, y + 35, row.says, "quiet", room=x + width - left)
        self._parts.append("</a>")

    def words(self, x: float, y: float, text: str, *, room: float, anchor: str = "start", colour: str = "") -> None:
        """A quiet line beside an arrow, say."""
        self._text(x, y, text, "quiet", room=room, anchor=anchor, style=f"fill: var(--{colour})" if colour else "")

    def arrow(self, *points: tuple[float, float], colour: str = "line") -> None:
        """A line through the points, with a head at the last."""
        (x1, y1), (x2, y2) = points[-2:]
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        ends = (*points[:-1], (x2 - 6 * dx, y2 - 6 * dy))  # short of the head's tip
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in ends)
        self._parts.append(f'<path class="arrow" style="stroke: var(--{colour})" d="{path}"/>')
        wings = [(x2, y2), (x2 - 9 * dx - 5 * dy, y2 - 9 * dy - 5 * dx), (x2 - 9 * dx + 5 * dy, y2 - 9 * dy + 5 * dx)]
        corners = " ".join(f"{x:g},{y:g}" for x, y in wings)
        self._parts.append(f'<polygon style="fill: var(--{colour})" points="{corners}"/>')
        self.height = max(self.height, *(y for _, y in points))

    def svg(self) -> str:
        """The whole file."""
        height = round(self.height + MARGIN)
        title, description = escape(self.title), escape(self.description)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-labelledby="{self.name}-title {self.name}-says">'
        )
        parts = [
            head,
            f'<title id="{self.name}-title">{title}</title>',
            f'<desc id="{self.name}-says">{description}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
            *(part for part in self._parts if part),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    # Within ----------------------------------------------------------------------------------------------------------

    def _slots(self, x: float, y: float, filled: int, kind: str) -> None:
        """A block: its token slots in a row, the first ones filled."""
        for i in range(4):
            self._rect(x + 15 * i, y, 15, 15, f"slot {kind}" if i < filled else "slot")

    def _rect(
        self, x: float, y: float, width: float, height: float, kind: str, style: str = "", radius: float = 0
    ) -> None:
        kind, style = f' class="{kind}"' if kind else "", f' style="{style}"' if style else ""
        rounded = f' rx="{radius:g}"' if radius else ""
        self._parts.append(f'<rect{kind}{style} x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{rounded}/>')
        self.height = max(self.height, y + height)

    def _text(
        self, x: float, y: float, text: str, kind: str, *, room: float, anchor: str = "start", style: str = ""
    ) -> None:
        needs = width_of(text, kind)
        if needs > room:
            raise ValueError(f"{self.name}: {text!r} needs {needs:.0f} units, has {room:.0f}")
        end = ' text-anchor="end"' if anchor == "end" else ""
        style = f' style="{style}"' if style else ""
        self._parts.append(f'<text class="{kind}"{style} x="{x:g}" y="{y:g}"{end}>{escape(text, quote=False)}</text>')
        self.height = max(self.height, y + 4)


def width_of(text: str, kind: str) -> float:
    """Units that a `<text>` of these classes takes at most."""
    kinds = kind.split()
    size = TITLE if {"title", "mark"} & {*kinds} else CODE if "code" in kinds else SMALL if "quiet" in kinds else SANS
    return text_width(text, size, code="code" in kinds, bold=bool({"title", "mark", "head", "name"} & {*kinds}))
