"""Stage: a show in a terminal. Keys come in, pictures go out, until it is over; then the terminal is as it was.

It plays a `Player` in the alternate screen. Of an engine it knows only a function that makes one more step, and no
thread runs anywhere: keys are read between steps. Whatever ends the show (a key, Ctrl-C, SIGTERM, SIGHUP, an exception
in that function), the way out is the same. Ctrl-Z gives the terminal back until the program goes on.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from copy import copy
from types import FrameType
from typing import Any

from rich.console import Console
from rich.control import Control
from rich.screen import Screen
from rich.text import Text

from minipaged.viz.answers import Answers
from minipaged.viz.dashboard import dashboard
from minipaged.viz.footer import footer, help_page
from minipaged.viz.keys import Keys
from minipaged.viz.picture import Picture
from minipaged.viz.player import Player
from minipaged.viz.theme import Theme

LEAST_WIDTH, LEAST_HEIGHT = 60, 20
MOST_WIDTH, MOST_HEIGHT = 200, 60  # beyond, lines are too long to be read
REDRAW_SECONDS = 0.08
RESIZE_SECONDS = 0.2  # how often the terminal's size is looked at while nothing else happens

Board = Callable[[int, int, int, Theme], Picture]  # of the step's index, a width, a height and a theme

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def is_interactive(console: Console) -> bool:
    """Whether a person sits there with keys: a terminal in and out, which can be drawn on."""
    return not why_no_picture(console)


def why_no_picture(console: Console) -> str:
    """What is missing for a show, in a few words; "" when nothing is."""
    if not console.is_terminal:
        return "standard output is no terminal"
    if console.is_dumb_terminal:
        return f"TERM is {os.environ.get('TERM', '')!r}, and such a terminal cannot be drawn on"
    return "" if sys.stdin.isatty() else "standard input is no terminal, so there are no keys"


def perform(
    player: Player,
    console: Console,
    *,
    step: Callable[[], bool] | None = None,
    answers: Answers | None = None,
    stays: bool = True,
    board: Board | None = None,
) -> None:
    """Show a run until `q`, or until the terminal is gone.

    Args:
        player: where to begin, how fast. `player.trace` must not be empty unless there is a `step`.
        console: of a terminal; see `is_interactive`.
        step: makes one more step of a live run; says False when there was nothing left to do.
        answers: of the same trace, to show the texts as they grow.
        board: what is drawn above the footer in the place of the dashboard.
        stays: whether a live run that is over stays on the screen; not even then if someone looks at its past.

    Raises:
        SystemExit: SIGTERM or SIGHUP came; the terminal is restored.
        Exception: whatever `step` raises; the terminal is restored.
    """
    theme = Theme.of(console)
    shown: Any = None  # what the picture on the screen was made of
    drawn_seconds, passed_seconds = 0.0, time.monotonic()
    with _Terminal(console) as terminal:
        while not player.quit:
            if terminal.was_away():
                shown = None
            now = time.monotonic()
            player.pass_time(now - passed_seconds)
            passed_seconds = now
            if step is not None and player.take_step():
                if step():
                    player.stepped()
                else:
                    leaves = not stays and player.following and not player.paused
                    player.end_live()
                    if leaves:
                        return
            wait_seconds = min(player.seconds_to_next, RESIZE_SECONDS)
            to_show = (copy(player), len(player.trace), console.size)
            if to_show != shown:
                due_seconds = drawn_seconds + REDRAW_SECONDS - time.monotonic()
                if due_seconds <= 0:
                    terminal.draw(picture(player, answers, console.width, console.height, theme, board))
                    shown, drawn_seconds = to_show, time.monotonic()
                else:
                    wait_seconds = min(wait_seconds, due_seconds)
            try:
                key = terminal.key(wait_seconds)
                while key is not None:  # all that were typed; then at once a picture
                    player.press(key)
                    drawn_seconds = 0.0
                    key = terminal.key(0.0)
            except EOFError:  # there is nobody left to press one
                return


def picture(
    player: Player, answers: Answers | None, width: int, height: int, theme: Theme, board: Board | None = None
) -> Picture:
    """What a player shows, for a size: the dashboard, the answers where they are wanted and have room, the footer."""
    width, height = min(width, MOST_WIDTH), min(height, MOST_HEIGHT)
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        words = f"This terminal is {width} x {height}.", f"The map needs {LEAST_WIDTH} x {LEAST_HEIGHT}; q quits."
        return Picture([Text(line) for line in words]).fitted(width, height)
    if player.help:
        return help_page(player, width, height, theme)
    rows = height - 1
    texts = Picture()
    if answers is not None and player.texts and len(player.trace):
        texts = answers.picture(player.index, player.view.sequence, width, _text_rows(rows), theme)
    if board is not None:
        drawn = board(player.index, width, rows - len(texts), theme)
    else:
        drawn = dashboard(player.trace, player.index, player.view, width, rows - len(texts), theme)
    return drawn.fitted(width, rows - len(texts), pad=True) + texts + Picture([footer(player, width, theme)])


def _text_rows(rows: int) -> int:
    """Lines for the answers: the dashboard comes first."""
    return max(3, min(10, (rows - 20) // 2)) if rows > 19 else 0


class _Terminal:
    """The alternate screen and the keys, within a `with` block."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._keys = Keys()
        self._handlers: dict[signal.Signals, Any] = {}
        self._is_asked_away = False

    def __enter__(self) -> _Terminal:
        for number in _ENDINGS:
            self._handlers[number] = signal.signal(number, _end)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._ask_away)
        self._handlers[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave the terminal half given back
        try:
            self._give_back()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def draw(self, picture: Picture) -> None:
        """All of it, in one piece and in place."""
        with self._console:
            self._console.control(Control.home())
            self._console.print(Screen(picture), end="")
        self._console.file.flush()

    def key(self, timeout_seconds: float) -> str | None:
        """The next key, or None when none comes in time.

        Raises:
            EOFError: the terminal is gone.
        """
        return self._keys.read(timeout_seconds)

    def was_away(self) -> bool:
        """If Ctrl-Z was pressed: gives the terminal back, stops here, and takes it again when the program goes on."""
        if not self._is_asked_away:
            return False
        self._is_asked_away = False
        self._give_back()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self._take()
        return True

    def _ask_away(self, number: int, frame: FrameType | None) -> None:
        self._is_asked_away = True

    def _take(self) -> None:
        self._keys.__enter__()
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)

    def _give_back(self) -> None:
        """Does no harm where nothing was taken."""
        try:
            self._console.show_cursor(True)
            self._console.set_alt_screen(False)
            self._console.file.flush()
        finally:  # also when nothing can be written any more
            self._keys.__exit__()


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the program by the way that every exception takes; a second signal does not disturb it."""
    for ending in _ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":  # python -m minipaged.viz.stage
    from minipaged.viz.example import example_trace

    if is_interactive(Console()):
        perform(Player(example_trace()), Console())
    else:
        print(picture(Player(example_trace(), index=20), None, 100, 40, Theme(colors="none")).plain, end="")
