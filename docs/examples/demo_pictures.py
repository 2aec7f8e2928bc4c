"""Makes docs/assets/demo.svg and docs/assets/scoreboard.svg from a run of the real `minipaged demo`.

    python docs/examples/demo_pictures.py [--step N]

The first is the demo's own moving picture at one step; the second is what it prints at its end.
"""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path
from typing import Any

import rich.console
import rich.live
import rich.progress
import rich.status
from rich.console import Console
from rich.terminal_theme import TerminalTheme

ASSETS = Path(__file__).parents[1] / "assets"
WIDTH, HEIGHT = 100, 26
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
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def main() -> None:
    """Runs the demo and saves the two pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--step", type=int, default=90, help="the step of the first picture (default 90)")
    step = parser.parse_args().step

    # The demo makes its own console; rich's modules, imported above, keep the real class.
    rich.console.Console = lambda **options: new_console()  # type: ignore[assignment,misc]
    from minipaged import cli
    from minipaged.cli import demo_view, scoreboard

    picture, board = new_console(record=True), new_console(record=True)

    class View(demo_view.DemoView):
        """Draws at the wanted step only."""

        def __call__(self, record: Any) -> None:
            self._drawn_seconds = 0.0 if record.step == step else float("inf")
            super().__call__(record)

        def _picture(self, record: Any) -> Any:
            drawn = super()._picture(record)
            picture.print(drawn)
            return drawn

    demo_view.DemoView = View  # type: ignore[misc]
    print_scoreboard = scoreboard.print_scoreboard
    scoreboard.print_scoreboard = lambda console, *args: print_scoreboard(board, *args)
    status = cli.main(["demo"])
    assert status == 0, "the demo failed"
    save(picture, "minipaged demo", ASSETS / "demo.svg")
    save(board, "minipaged demo", ASSETS / "scoreboard.svg")


if __name__ == "__main__":
    main()
