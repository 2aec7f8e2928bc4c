"""Theme: by which letter, glyph and colour each thing is known, in the three colour modes and the two character sets.

Everything is told apart by its letter or glyph; colour only repeats it. Knows no record and draws nothing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Colors = Literal["none", "16", "full"]

_OWNERS: dict[Colors, tuple[str, ...]] = {
    "none": ("",),
    "16": ("cyan", "yellow", "green", "magenta", "blue", "red", "bright_cyan", "bright_yellow", "bright_green"),
    # Light enough for a dark terminal, dark enough for a light one; neighbours far apart.
    "full": (
        "#2aa5d8", "#e08a1e", "#4caf50", "#c264d4", "#d9534f", "#1fa99a", "#9a8c2c", "#7a7fe0", "#d85a9a",
        "#6aa32d", "#b5713c",
    ),
}  # fmt: skip
_ROLES: dict[str, tuple[str, str]] = {  # what -> attributes, colour; without colour the attributes stay
    "plain": ("", ""),
    "title": ("bold", ""),
    "quiet": ("dim", ""),
    "free": ("dim", ""),
    "evictable": ("dim", ""),
    "shared": ("bold", ""),
    "new": ("bold", "green"),
    "copied": ("bold", "cyan"),
    "evicted": ("bold", "red"),
    "dropped": ("bold", "red"),
    "swapped out": ("bold", "magenta"),
    "swapped in": ("bold", "blue"),
    "released": ("", "yellow"),
    "preempt": ("bold", "red"),
    "prefill": ("", "green"),
    "recompute": ("", "yellow"),
    "decode": ("", "cyan"),
    "warning": ("", "yellow"),
}


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One character set. Every glyph is one cell wide.

    Args:
        fill: from empty to full.
        free, evictable: blocks that nobody holds, without and with content.
        sole, clean: host blocks: the only copy, and a copy of what is on the device, too.
        mixed: a cell that stands for blocks of several owners.
        marks: kind of change -> its mark behind the block.
        prefill, recompute, decode, waits, waits_again, preempted: of the timeline.
        bar, bar_half, bar_rest: of a gauge: filled, held but empty, and what is left.
        arrow, rule, wall, dot, cut: between logical and physical; lines; a small separator; where text was cut.
        branch, last_branch, trunk: of the tree.
        times: as in 2×.
    """

    fill: str
    free: str
    evictable: str
    sole: str
    clean: str
    mixed: str
    marks: dict[str, str]
    prefill: str
    recompute: str
    decode: str
    waits: str
    waits_again: str
    preempted: str
    bar: str
    bar_half: str
    bar_rest: str
    arrow: str
    rule: str
    wall: str
    dot: str
    cut: str
    branch: str
    last_branch: str
    trunk: str
    times: str


_MARKS = {"new": "+", "evicted": "x", "dropped": "x", "released": "-"}
UNICODE = Glyphs(
    fill=" ▁▂▃▄▅▆▇█", free="·", evictable="○", sole="●", clean="=", mixed="*",
    marks=_MARKS | {"copied": "»", "swapped out": "↑", "swapped in": "↓", "shared": "&"},
    prefill="█", recompute="▒", decode="━", waits="·", waits_again="╌", preempted="◂",
    bar="█", bar_half="▒", bar_rest="·", arrow="→", rule="─", wall="│", dot="·", cut="…",
    branch="├─", last_branch="└─", trunk="│ ", times="×",
)  # fmt: skip
ASCII = Glyphs(
    fill="0123456789", free=".", evictable="~", sole="@", clean="=", mixed="*",
    marks=_MARKS | {"copied": "c", "swapped out": "^", "swapped in": "v", "shared": "&"},
    prefill="#", recompute="%", decode="=", waits=".", waits_again="~", preempted="<",
    bar="#", bar_half="%", bar_rest=".", arrow=">", rule="-", wall="|", dot="-", cut="~",
    branch="|-", last_branch="`-", trunk="| ", times="x",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Theme:
    """How things look.

    Args:
        unicode: False where only ASCII can be shown.
        colors: "none", "16", or "full".
    """

    unicode: bool = True
    colors: Colors = "full"

    @classmethod
    def of(cls, console: Console) -> Theme:
        """What a console can show; it has looked at the terminal, at `NO_COLOR` and at the encoding. That is UTF-8 in
        Python even where the locale is C, which promises no more than ASCII.
        """
        colors: Colors = "full"
        if console.no_color or console.color_system is None:
            colors = "none"
        elif console.color_system in ("standard", "windows"):
            colors = "16"
        unicode = console.encoding.startswith("utf") and not console.legacy_windows and not _is_plain_locale()
        return cls(unicode, colors)

    @property
    def glyphs(self) -> Glyphs:
        """The character set."""
        return UNICODE if self.unicode else ASCII

    def role(self, role: str) -> Style:
        """The style of what something is, such as "evicted" or "title"."""
        return _role_style(role, self.colors != "none")

    def owner(self, sequence: int) -> Style:
        """The style of what belongs to a sequence."""
        return _owner_style(self.colors, sequence % len(_OWNERS[self.colors]))

    def fill(self, num_filled: int, size: int) -> str:
        """How full: nothing, everything, or one of the levels between, which only a part of the slots takes."""
        glyphs = self.glyphs.fill
        between = len(glyphs) - 2
        if num_filled <= 0:
            return glyphs[0]
        return glyphs[-1] if num_filled >= size else glyphs[1 + num_filled * between // size]

    def text(self, text: str) -> str:
        """One line of what this terminal can show: no control characters, and only ASCII where there is no more."""
        line = "".join(c if c.isprintable() else " " for c in text)
        return line if self.unicode else line.encode("ascii", "replace").decode()

    def cut(self, text: str, cells: int) -> str:
        """`text` on one line of at most `cells` cells; a wide character is never halved."""
        line = self.text(text)
        if cell_len(line) <= cells:
            return line
        return set_cell_size(line, cells - 1).rstrip() + self.glyphs.cut if cells > 0 else ""


def _is_plain_locale() -> bool:
    """Whether the user has set the locale C, and has not told Python to use UTF-8 all the same."""
    if os.environ.get("PYTHONUTF8") == "1" or os.environ.get("PYTHONIOENCODING"):
        return False
    character_type = os.environ.get("LC_CTYPE", "")
    if character_type == "C.UTF-8":  # most likely Python's own doing, which puts it there beside LANG=C
        character_type = ""
    return (os.environ.get("LC_ALL") or character_type or os.environ.get("LANG")) in ("C", "POSIX")


@cache
def _role_style(role: str, colored: bool) -> Style:
    attributes, color = _ROLES[role]
    return Style.parse(f"{attributes} {color if colored else ''}".strip() or "none")


@cache
def _owner_style(colors: Colors, place: int) -> Style:
    return Style.parse(_OWNERS[colors][place] or "none")


def letter(sequence: int) -> str:
    """The one letter by which a sequence is known on the map: A to Z, a to z, and round again."""
    return LETTERS[sequence % len(LETTERS)]


def name(sequence: int) -> str:
    """A name that is one sequence's alone: its letter, from the second round on with the round: A … z, A2 … z2, A3."""
    lap = sequence // len(LETTERS)
    return letter(sequence) + (str(lap + 1) if lap else "")


def sequence_named(text: str) -> int | None:
    """The sequence of that name; None when no sequence can have it."""
    found = re.fullmatch(r"([A-Za-z])([1-9]\d*)?", text)
    if found is None or found[2] == "1":
        return None
    return LETTERS.index(found[1]) + len(LETTERS) * (int(found[2] or 1) - 1)


def many(number: int, what: str) -> str:
    """ "1 block", "2 blocks"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def with_names(cause: str) -> str:
    """A record's cause, with names in the place of ids: "sequence 0 needs room" becomes "A needs room"."""
    return re.sub(r"\bsequence (\d+)\b", lambda found: name(int(found[1])), cause)


if __name__ == "__main__":
    from rich.text import Text

    from minipaged.viz.picture import Picture
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: Picture(
            [
                Text.assemble(*((letter(i), theme.owner(i)) for i in range(len(LETTERS)))),
                *(Text(f"{role:12} {style}", theme.role(role)) for role, style in _ROLES.items()),
                *(Text(f"{mark}  {kind}") for kind, mark in theme.glyphs.marks.items()),
            ]
        )
    )
