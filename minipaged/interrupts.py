"""Uninterrupted: Ctrl-C, SIGTERM and SIGHUP wait while the books are written, and strike where it is allowed.

Knows signals and nothing of an engine. It holds back what would raise in the midst of things: SIGINT where Python makes
a KeyboardInterrupt of it, SIGTERM and SIGHUP where the program has a function for them. Where something else handles
them, or outside the main thread, it does nothing: no exception comes from there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Uninterrupted:
    """A `with` block that these signals do not interrupt. One that came meanwhile strikes at its end."""

    def __init__(self) -> None:
        self._found: dict[signal.Signals, Callable[[int, FrameType | None], Any]] = {}  # what is held, and its handler
        self._came: list[int] = []

    def __enter__(self) -> Uninterrupted:
        try:
            if threading.current_thread() is threading.main_thread():
                for number in _ENDINGS:
                    handler = signal.getsignal(number)
                    if callable(handler) and (number != signal.SIGINT or handler is signal.default_int_handler):
                        self._found[number] = handler
                        signal.signal(number, self._note)
        except BaseException:  # one struck before all were held
            self._let_go()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._let_go()
        self._strike()

    def allowed(self) -> _Allowed:
        """Within the block, an inner one in which a signal interrupts, as it does elsewhere."""
        return _Allowed(self)

    def let_strike(self) -> None:
        """A signal interrupts from here on; one that has come does so now."""
        self._let_go()
        self._strike()

    def hold_back(self) -> None:
        """Signals wait again."""
        try:
            self._exchange(True)
        finally:  # once more: one may have struck between two of them
            self._exchange(True)

    def _let_go(self) -> None:
        try:
            self._exchange(False)
        finally:
            self._exchange(False)

    def _exchange(self, holds: bool) -> None:
        for number, handler in self._found.items():
            now, then = (handler, self._note) if holds else (self._note, handler)
            if signal.getsignal(number) == now:  # what somebody else has put there meanwhile stays
                signal.signal(number, then)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._came:
            self._came.append(number)

    def _strike(self) -> None:
        """Those that came, in their order; where one raises, the others still get their turn."""
        while self._came:
            number = self._came.pop(0)
            try:
                self._found[signal.Signals(number)](number, None)
            finally:
                self._strike()


class _Allowed:
    """Not a generator: interrupted on its way out, that would be left half run, and hold signals back for good when the
    garbage collector ends it.
    """

    def __init__(self, outer: Uninterrupted) -> None:
        self._outer = outer

    def __enter__(self) -> None:
        try:
            self._outer.let_strike()
        except BaseException:
            self._outer.hold_back()
            raise

    def __exit__(self, *exc_info: object) -> None:
        self._outer.hold_back()
