"""Makes docs/assets/demo.svg and docs/assets/scoreboard.svg from a run of the real `minipaged demo`.

    python docs/examples/demo_pictures.py

The first is the demo's own moving picture at one step, chosen so that some run, some wait, and some have given their
blocks up; the second is what it prints at its end.
"""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import Any

import rich.console
import rich.live
import rich.progress
import rich.status
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import TerminalTheme

ASSETS = Path(__file__).parents[1] / "assets"
WIDTH, HEIGHT = 100, 26
CELL_WIDTH = 12.2  # of rich's SVG, in its units
# Colours that can be read on a white page and on a black one.
THEME = TerminalTheme(
    (16, 24, 32),
    (216, 222, 233),
    [(16, 24, 32), (235, 111, 110), (126, 200, 120), (232, 196, 104), (110, 160, 240), (200, 140, 220),
     (95, 200, 200), (216, 222, 233)],
    [(110, 120, 135), (255, 140, 140), (150, 225, 145), (250, 215, 130), (140, 185, 255), (220, 165, 240),
     (125, 225, 225), (255, 255, 255)],
)  # fmt: skip


def new_console(**options: Any) -> Console:
    """A terminal that nobody sees, of a fixed size."""
    options = {"width": WIDTH, "height": HEIGHT, "force_terminal": True, "highlight": False} | options
    return Console(file=io.StringIO(), color_system="truecolor", **options)


def save(console: Console, title: str, path: Path) -> None:
    """As SVG, without the web font that rich would have the reader's browser ask for."""
    svg = console.export_svg(title=title, theme=THEME)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, Noto Sans Mono CJK SC")
    svg = re.sub(r"terminal-\d+", f"terminal-{path.stem}", svg)
    svg = re.sub(r'textLength="[\d.]+"([^>]*)>([^<]*)<', _as_wide_as_its_cells, svg)
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def _as_wide_as_its_cells(text: re.Match[str]) -> str:
    """rich allows each character one cell; a Chinese one takes two."""
    return f'textLength="{CELL_WIDTH * cell_len(html.unescape(text[2])):.1f}"{text[1]}>{text[2]}<'


def main() -> None:
    """Runs the demo and saves the two pictures."""
    # The demo makes its own console; rich's modules, imported above, keep the real class.
    rich.console.Console = lambda **options: new_console()  # type: ignore[assignment,misc]
    from minipaged import cli
    from minipaged.cli import demo_view, scoreboard

    pictures: list[Any] = []
    board = new_console(record=True)

    class View(demo_view.DemoView):
        """Draws only at a step that shows more than those before."""

        best = 0

        def __call__(self, record: Any) -> None:
            self._drawn_seconds = float("inf")
            super().__call__(record)
            states = [row.state for row in self._rows.values()]
            telling = states.count("preempted") >= 2 and record.held_slots > 0.9 * record.total_slots
            if telling and len(states) <= HEIGHT - 6 and states.count("running") > self.best:
                self.best = states.count("running")
                pictures.append(self._picture(record))

    demo_view.DemoView = View  # type: ignore[misc]
    print_scoreboard = scoreboard.print_scoreboard
    scoreboard.print_scoreboard = lambda console, *args: print_scoreboard(board, *args)
    status = cli.main(["demo"])
    assert status == 0, "the demo failed"
    picture = new_console(record=True)
    picture.print(pictures[-1])
    save(picture, "minipaged demo", ASSETS / "demo.svg")
    save(board, "minipaged demo", ASSETS / "scoreboard.svg")


if __name__ == "__main__":
    main()
