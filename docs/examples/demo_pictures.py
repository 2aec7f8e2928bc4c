"""Makes the pictures in docs/assets from runs of the real program.

    python docs/examples/demo_pictures.py

`demo.svg` and `watch.svg` are single steps of `minipaged demo` and `minipaged watch`, recorded and then drawn as a
terminal would show them; `scoreboard.svg` is what the demo prints at its end.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minipaged import cli
from minipaged.cli import scoreboard
from minipaged.model.loader import resolve_model
from minipaged.model.tokenizer import Tokenizer
from minipaged.trace_file import TraceReader
from minipaged.viz.answers import Answers
from minipaged.viz.history import History
from minipaged.viz.player import Player
from minipaged.viz.show import eventful_step
from minipaged.viz.stage import picture
from minipaged.viz.svg import as_svg, console_svg, recording_console
from minipaged.viz.theme import Theme

ASSETS = Path(__file__).parents[1] / "assets"
BOARD_WIDTH = 100


def save(path: Path, svg: str) -> None:
    path.write_text(svg, encoding="utf-8")
    print(f"wrote {path}")


def draw_a_step(arguments: list[str], choose: Callable[[History], int], width: int, height: int, path: Path) -> None:
    """Run a command, and draw the step that `choose` takes as its terminal would have shown it."""
    tokenizer = Tokenizer.from_folder(resolve_model("tiny-gpt"))
    assert tokenizer is not None
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "run.trace"
        with contextlib.redirect_stdout(io.StringIO()):
            assert cli.main([*arguments, "--record", str(record)]) == 0, f"{arguments} failed"
        with TraceReader(record) as trace:
            history = History(trace)
            player = Player(history, live=True, index=choose(history), has_texts=True)
            drawn = picture(player, Answers(history, tokenizer.decode), width, height, Theme())
            save(path, as_svg(drawn, f"minipaged {arguments[0]}", width))


def crowded_step(history: History) -> int:
    """Where most run while others have given their blocks up."""

    def crowd(index: int) -> tuple[int, int]:
        moment = history.moment(index)
        preempted = sum(state.num_preemptions > 0 for state in moment.waiting)
        return min(preempted, 2), len(moment.running)

    return max(range(len(history)), key=crowd)


def main() -> None:
    """Runs both commands and saves the three pictures."""
    board = recording_console(BOARD_WIDTH)
    print_scoreboard: Any = scoreboard.print_scoreboard
    scoreboard.print_scoreboard = lambda console, *args: print_scoreboard(board, *args)
    draw_a_step(["demo"], crowded_step, 120, 44, ASSETS / "demo.svg")
    save(ASSETS / "scoreboard.svg", console_svg(board, "minipaged demo"))
    draw_a_step(["watch"], eventful_step, 120, 40, ASSETS / "watch.svg")


if __name__ == "__main__":
    main()
