"""Uninterrupted: Ctrl-C waits while the books are written, and strikes where it is allowed.

Knows signals and nothing of an engine. Outside the main thread, or where something else handles SIGINT, it does
nothing: Python delivers no KeyboardInterrupt there.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Uninterrupted:
    """A `with` block that a SIGINT does not interrupt. One that came meanwhile strikes at its end."""

    def __init__(self) -> None:
        self._holds = False
        self._came = False

    def __enter__(self) -> Uninterrupted:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._holds = True
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._holds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._strike()

    def allowed(self) -> _Allowed:
        """Within the block, an inner one in which a SIGINT interrupts, as it does elsewhere."""
        return _Allowed(self)

    def let_strike(self) -> None:
        """A SIGINT interrupts from here on; one that has come does so now."""
        if self._holds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._strike()

    def hold_back(self) -> None:
        """A SIGINT waits again."""
        if self._holds:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True

    def _strike(self) -> None:
        if self._came:
            self._came = False
            raise KeyboardInterrupt


class _Allowed:
    """Not a generator: interrupted on its way out, that would be left half run, and hold SIGINT back for good when the
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
