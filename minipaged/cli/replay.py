"""`minipaged replay TRACE`: a recorded run, forward and back, in the terminal; or one step of it as text or SVG, or all
of it as one HTML page.

Reads a trace and shows it by `viz`; it needs no model, and does not load torch.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

from minipaged.cli.recording import say_why_no_picture
from minipaged.cli.watch import add_speed_option, parse_speed

if TYPE_CHECKING:
    from rich.console import Console

    from minipaged.trace import Trace
    from minipaged.viz.dashboard import View
    from minipaged.viz.history import History

DEFAULT_WIDTH, DEFAULT_HEIGHT = 120, 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged replay`."""
    parser.description = (
        "Play a run that was recorded with --record: forward and back, with the keys of `minipaged watch`; ? says what "
        "they do."
    )
    parser.add_argument("trace", metavar="TRACE", type=Path, help="the file that --record has written")
    parser.add_argument(
        "--step", type=int, metavar="N", help="begin there, counting from 0; what to print (default: the last)"
    )
    parser.add_argument(
        "--panel",
        default="overview",
        metavar="NAME",
        help="what to show: overview (the default), blocks, tables, timeline, tree or life",
    )
    parser.add_argument("--follow", metavar="NAME", help="a sequence by its name, such as A, or a block by its number")
    add_speed_option(parser)
    outputs = parser.add_argument_group("instead of playing it")
    outputs.add_argument("--text", action="store_true", help="print the step as plain text")
    outputs.add_argument("--svg", metavar="FILE", type=Path, help="write the step as a picture")
    outputs.add_argument(
        "--html", metavar="FILE", type=Path, help="write one page that shows every step, for a browser; it needs no net"
    )
    outputs.add_argument("--width", type=int, metavar="N", help=f"of --text and --svg (default {DEFAULT_WIDTH})")
    outputs.add_argument("--height", type=int, metavar="N", help=f"of --text and --svg (default {DEFAULT_HEIGHT})")


def run(args: argparse.Namespace) -> int:
    """Plays the trace, or writes what was asked for."""
    speed = parse_speed(args.speed)
    from rich.console import Console

    from minipaged.trace_file import TraceReader
    from minipaged.viz.history import History
    from minipaged.viz.player import Player
    from minipaged.viz.stage import perform, why_no_picture
    from minipaged.viz.summary import summary
    from minipaged.viz.theme import Theme

    with TraceReader(args.trace) as trace:
        if trace.notice:
            print(f"minipaged: {trace.notice}", file=sys.stderr)
        history = History(trace)
        console = Console(highlight=False)
        view = _view(args, history)
        index = _index(trace, args.step)
        if args.text or args.svg or args.html:
            _write(args, history, index, view, console)
        elif not (why := why_no_picture(console)) and len(trace):
            first = index if args.step is not None else 0
            player = Player(history, speed=speed, paused=args.step is not None, index=first, view=view)
            perform(player, console)
        else:
            if why:
                say_why_no_picture(why)
            print(Theme().text(trace.header.description))  # no control characters from a file
            print("\n".join(summary(trace)))
    return 0


def _write(args: argparse.Namespace, history: History, index: int, view: View, console: Console) -> None:
    """The step as text or SVG, all steps as a page: whatever was asked for.

    Raises:
        ValueError: there is no step, or a size is none; or a file cannot be written.
    """
    from minipaged.viz.dashboard import dashboard
    from minipaged.viz.page import page
    from minipaged.viz.svg import as_svg
    from minipaged.viz.theme import Theme

    if not len(history):
        raise ValueError(f"replay: {args.trace} has no step that could be shown")
    for file in (args.svg, args.html):
        if file is not None and file.exists() and file.samefile(args.trace):
            raise ValueError(f"replay: {file} is the trace itself; name another file")
    for what, cells in (("width", args.width), ("height", args.height)):
        if cells is not None and cells < 1:
            raise ValueError(f"replay: --{what} is {cells}; it must be at least 1")
    terminal = shutil.get_terminal_size((DEFAULT_WIDTH, DEFAULT_HEIGHT))
    width, height = args.width or DEFAULT_WIDTH, args.height or DEFAULT_HEIGHT
    if args.text:
        if console.is_terminal:
            width, height = args.width or terminal.columns, args.height or terminal.lines - 1
        theme = Theme(unicode=Theme.of(console).unicode, colors="none")
        print(dashboard(history, index, view, width, height, theme).plain, end="")
    if args.svg:
        step = history.moment(index).record.step
        svg = as_svg(dashboard(history, index, view, width, height, Theme()), f"minipaged, step {step}", width)
        _save(args.svg, svg)
    if args.html:
        _save(args.html, page(history))


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"replay: {path} cannot be written: {error.strerror}") from None
    print(f"wrote {path}")


def _index(trace: Trace, step: int | None) -> int:
    """The place of a step in the trace, which may have begun later, or have missed some.

    Raises:
        ValueError: it is not there.
    """
    last = max(len(trace) - 1, 0)
    if step is None:
        return last
    steps = range(len(trace))
    index = bisect_left(steps, step, key=lambda place: trace.moment(place).record.step)
    if index == len(trace) or trace.moment(index).record.step != step:
        numbers = f"{trace.moment(0).record.step} to {trace.moment(last).record.step}" if len(trace) else "none"
        raise ValueError(f"replay: there is no step {step} in this trace; its steps are {numbers}")
    return index


def _view(args: argparse.Namespace, trace: Trace) -> View:
    """What the user wants to see.

    Raises:
        ValueError: there is no such panel, or no such name.
    """
    from minipaged.viz.dashboard import PANELS, View
    from minipaged.viz.theme import sequence_named

    if args.panel not in PANELS:
        raise ValueError(f"replay: --panel is {args.panel!r}; it must be one of {', '.join(PANELS)}")
    if args.follow is None:
        return View(args.panel)
    if args.follow.isdecimal():
        if int(args.follow) >= trace.header.num_blocks:
            raise ValueError(f"replay: there is no block {args.follow}; the pool has {trace.header.num_blocks}")
        return View(args.panel, block=int(args.follow))
    sequence = sequence_named(args.follow)
    if sequence is None:
        raise ValueError(f"replay: --follow is {args.follow!r}; it must be a sequence's name, such as A, or a number")
    return View(args.panel, sequence=sequence)
