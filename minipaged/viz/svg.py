"""A picture as SVG: what a terminal of some size would show. It asks nobody for a font or anything else."""

from __future__ import annotations

import html
import io
import re

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.terminal_theme import TerminalTheme

_CELL_WIDTH = 12.2  # of rich's SVG, in its units
# Colours that can be read on a white page and on a black one.
_THEME = TerminalTheme(
    (16, 24, 32),
    (216, 222, 233),
    [(16, 24, 32), (235, 111, 110), (126, 200, 120), (232, 196, 104), (110, 160, 240), (200, 140, 220),
     (95, 200, 200), (216, 222, 233)],
    [(110, 120, 135), (255, 140, 140), (150, 225, 145), (250, 215, 130), (140, 185, 255), (220, 165, 240),
     (125, 225, 225), (255, 255, 255)],
)  # fmt: skip
_FONTS = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, Noto Sans Mono CJK SC"


def recording_console(width: int, height: int = 25) -> Console:
    """A terminal that nobody sees, of a fixed size."""
    return Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor", highlight=False,
        width=width, height=height, legacy_windows=False, no_color=False,
    )  # fmt: skip


def as_svg(picture: RenderableType, title: str, width: int) -> str:
    """The picture in a window with a title.

    Args:
        picture: anything that rich can print.
        title: of the window.
        width: in cells.

    Returns:
        The file's text, in SVG.
    """
    console = recording_console(width)
    console.print(picture)
    return console_svg(console, title)


def console_svg(console: Console, title: str) -> str:
    """What a recording console was given to print."""
    name = re.sub(r"\W+", "-", title)
    svg = console.export_svg(title=title, theme=_THEME, unique_id=f"terminal-{name}")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)  # a web font that the reader's browser would ask for
    svg = svg.replace("Fira Code", _FONTS)
    svg = re.sub(r'textLength="[\d.]+"([^>]*)>([^<]*)<', _as_wide_as_its_cells, svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _as_wide_as_its_cells(text: re.Match[str]) -> str:
    """rich allows each character one cell; a Chinese one takes two."""
    return f'textLength="{_CELL_WIDTH * cell_len(html.unescape(text[2])):.1f}"{text[1]}>{text[2]}<'


if __name__ == "__main__":  # python -m minipaged.viz.svg > step.svg
    from minipaged.viz.dashboard import View, dashboard
    from minipaged.viz.example import example_trace
    from minipaged.viz.theme import Theme

    print(as_svg(dashboard(example_trace(), 20, View(), 120, 36, Theme()), "minipaged", 120), end="")
