"""Stage: where a lesson plays. It says, asks, shows a table and a picture, and keeps score.

`run(LESSON, play)` is a lesson's whole `__main__`: it reads the command line and calls `play(stage)`, which returns the
figures. The stage knows nothing of what is played.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from lessons.runner.guard import text_of
from lessons.runner.lesson import Lesson
from lessons.runner.mine import Mine
from lessons.runner.numbers import parse_number, shown, verdict
from lessons.runner.workbook import Workbook
from minipaged.viz.svg import as_svg
from minipaged.viz.theme import Theme

WIDEST_TEXT_CELLS = 88  # prose wider than this is hard to read
Play = Callable[["Stage"], Any]  # returns the figures, a dataclass of the lesson's own


@dataclass(slots=True)
class Prediction:
    """A figure that is guessed before it is measured.

    Args:
        what: "slots lost to one short answer".
        unit: "slots"; empty for a bare number.
        ours: what the lesson's arithmetic says.
        yours: the learner's guess; None when they made none.
    """

    what: str
    unit: str
    ours: float
    yours: float | None = None


@dataclass(slots=True)
class Stage:
    """One performance of a lesson.

    Args:
        lesson: which one.
        console: where it plays.
        small: the ten-second version, for CI.
        device: "cpu" or "cuda".
        mine: whose parts are used.
        guesses: the learner's predictions that came with the command line, in order.
        asks: whether the learner can be asked.
        svg: a file for the picture, or None.
        options: the whole command line, for a lesson with options of its own.
    """

    lesson: Lesson
    console: Console
    small: bool = False
    device: str = "cpu"
    mine: Mine = field(default_factory=Mine)
    guesses: list[float] = field(default_factory=list)
    asks: bool = False
    svg: str | None = None
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    _predictions: list[Prediction] = field(default_factory=list)

    @property
    def theme(self) -> Theme:
        """What a picture may use: all there is for a file, else what the terminal can show."""
        return Theme() if self.svg else Theme.of(self.console)

    def act(self, number: int, title: str) -> None:
        """A heading: what is played now."""
        self.console.print()
        self.console.rule(f"[bold]Act {number}: {title}[/]", align="left")
        self.console.print()

    def say(self, text: str) -> None:
        """A paragraph, no wider than can be read with pleasure; rich's markup is understood."""
        self.console.print(text, width=min(self.console.width, WIDEST_TEXT_CELLS))
        self.console.print()

    def predict(self, what: str, ours: float, unit: str = "", *, hint: str = "") -> Prediction:
        """Ask the learner for a figure before it is measured. Without somebody to ask, the play goes on.

        Args:
            what: what is predicted, as the score line will call it.
            ours: the figure that the lesson's arithmetic predicts.
            unit: of both.
            hint: how one may reckon; shown with the question.
        """
        prediction = Prediction(what, unit, ours)
        if self.guesses:
            prediction.yours = self.guesses.pop(0)
        elif self.asks:
            prediction.yours = self._ask(prediction, hint)
        self._predictions.append(prediction)
        return prediction

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        highlight: object = None,
    ) -> None:
        """A table: a column of text, then columns of figures.

        Args:
            title: above it.
            columns: headings, with units.
            rows: as many cells each.
            highlight: the first cell of the row that stands out, the real part's; None for the last row.
        """
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left", overflow="fold")
        filled = [list(row) for row in rows]
        real = filled[-1][0] if highlight is None else highlight
        for row in filled:
            table.add_row(*map(str, row), style="bold" if row[0] == real else "")
        self.console.print(table)
        self.console.print()

    def picture(self, picture: RenderableType, title: str = "") -> None:
        """Show what memory, time or a tree looks like; the last one is what `--svg` keeps."""
        self.console.print(picture)
        self.console.print()
        if self.svg:
            text = as_svg(picture, title or self.lesson.name.replace("_", " "), min(self.console.width, 100))
            try:
                Path(self.svg).write_text(text, encoding="utf-8")
            except OSError as error:
                raise ValueError(f"--svg {self.svg}: {error.strerror}") from None

    def score(self, prediction: Prediction, measured: float) -> None:
        """The score line: yours, ours, measured."""
        yours = "—" if prediction.yours is None else shown(prediction.yours)
        unit = f" {prediction.unit}" if prediction.unit else ""
        figures = f"yours {yours}   ours {shown(prediction.ours)}   [bold]measured {shown(measured)}[/]{unit}"
        self.console.print(f"[bold]score[/]  {prediction.what}:  {figures}", soft_wrap=True)
        if prediction.yours is not None:
            self.console.print(f"       {verdict(prediction.yours, measured)}")

    def _ask(self, prediction: Prediction, hint: str) -> float | None:
        is_said = not prediction.unit or prediction.unit in prediction.what.split()
        unit = "" if is_said else f" ({prediction.unit})"
        if hint:
            self.say(f"[dim]{hint}[/]")
        while True:
            try:
                said = self.console.input(f"[bold]Your prediction:[/] {prediction.what}{unit}? ").strip()
            except EOFError:
                self.console.print()
                return None
            if not said:
                return None
            try:
                return parse_number(said)
            except ValueError as error:
                self.console.print(f"{error}; try again, or press Enter to skip")


def command_line(lesson: Lesson) -> argparse.ArgumentParser:
    """The options that every lesson has."""
    parser = argparse.ArgumentParser(prog=f"python -m lessons.{lesson.slug}", description=lesson.question)
    parser.add_argument("--small", action="store_true", help="the same in a few seconds, on less work")
    parser.add_argument("--predict", metavar="X", type=_guess, nargs="+", default=[],
                        help="your predictions, in the order in which you would be asked")  # fmt: skip
    parser.add_argument("--no-ask", action="store_true", help="ask for no prediction")
    parser.add_argument("--mine", action="store_true", help="with the parts that you have written in the place of ours")
    parser.add_argument("--workbook", metavar="DIR", help="where those are, if not in the workbook started last")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the model runs (default cpu)")
    parser.add_argument("--json", action="store_true", help="print the figures and nothing else")
    parser.add_argument("--svg", metavar="FILE", help="keep the picture in a file")
    return parser


def run(
    lesson: Lesson,
    play: Play,
    argv: Sequence[str] | None = None,
    *,
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
) -> int:
    """A lesson's command line.

    Args:
        lesson: its title page.
        play: plays it and returns the figures, a dataclass.
        argv: the arguments; the process's when None.
        add_arguments: for a lesson with options of its own; they are in `stage.options`.

    Returns:
        The exit status: 0; 1 after one line about the learner's parts, with which the play stopped; 2 after one line
        about bad input; 130 after Ctrl-C, 141 when nobody reads on.
    """
    parser = command_line(lesson)
    if add_arguments is not None:
        add_arguments(parser)
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no such character shows a question mark
    console = Console(quiet=options.json, highlight=False)
    asks = not (options.json or options.no_ask) and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    debug = os.environ.get("MINIPAGED_DEBUG") == "1"
    mine = Mine()
    try:
        if options.svg and not Path(options.svg).absolute().parent.is_dir():  # rather now than after the play
            raise ValueError(f"--svg {options.svg}: there is no such folder")
        if options.svg and Path(options.svg).is_dir():
            raise ValueError(f"--svg {options.svg}: it is a folder; it must be a file")
        # What a learner's part prints is no figure.
        with redirect_stdout(sys.stderr) if options.json else nullcontext():
            if options.mine:
                workbook = Workbook.current(options.workbook)
                if workbook is None:
                    raise ValueError("--mine needs a workbook; `python -m lessons start ../workbook` makes one")
                mine = Mine.of(workbook, upto=lesson.number)
                for line in mine.describe():
                    console.print(line, soft_wrap=True, markup=False)
            stage = Stage(
                lesson,
                console,
                small=options.small,
                device=options.device,
                mine=mine,
                guesses=list(options.predict),
                asks=asks,
                svg=options.svg,
                options=options,
            )
            console.print(f"[bold]Lesson {lesson.number}: {lesson.question}[/]", soft_wrap=True)
            figures = play(stage)
        if options.json:
            print(json.dumps(asdict(figures), indent=1))
        else:
            if stage.guesses:
                count = len(options.predict)
                console.print(f"\nOf your {count} predictions the last {len(stage.guesses)} were asked for by nothing.")
            then = f"check {lesson.number}" if lesson.has_exercise else f"run {lesson.number} --mine"
            console.print(
                f"\nNext: read lessons/{lesson.slug}/README.md, then python -m lessons {then}", soft_wrap=True
            )
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except (Exception, SystemExit) as error:
        where = _in_their_parts(error, mine)
        if debug or (not mine.answers and not isinstance(error, ValueError)):
            raise
        if mine.answers and (where or not isinstance(error, ValueError)):
            parts = ", ".join(map(str, mine.answers))
            said = " ".join(text_of(error).split())
            print(f"lesson {lesson.number}: with your parts (lessons {parts}) the play stopped: {said}{where}; "
                  "without --mine it goes on", file=sys.stderr)  # fmt: skip
            return 1
        print(f"lesson {lesson.number}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _guess(text: str) -> float:
    """`parse_number`, whose message argparse would otherwise hide."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _in_their_parts(error: BaseException, mine: Mine) -> str:
    """Where in the learner's files it was raised: " (lesson05_block_table.py, line 9)"; empty when it was not there."""
    files = {module.__file__ for module in mine.answers.values()}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
