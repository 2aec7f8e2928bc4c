"""A Ctrl-C at any line of the machinery that holds it back: it strikes once, and the next one finds it as before."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Any

import pytest

from minipaged import interrupts
from minipaged.interrupts import Uninterrupted

WATCHED = {interrupts.__file__, contextlib.__file__, signal.__file__, __file__}


def guarded(done: list[str]) -> None:
    """What the engine does: a part that must be whole, an inner one that may be interrupted, and the books after it."""
    with Uninterrupted() as held:
        done.append("began")
        try:
            with held.allowed():
                done.append("ran")
        except BaseException:
            done.append("booked")
            raise
        done.append("booked")


def strike_at(event: int, done: list[str]) -> bool:
    """Run it with a SIGINT at its `event`-th traced line; False when it has not so many."""
    seen = 0

    def trace(frame: FrameType, kind: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in WATCHED:
            return None
        if kind == "line":
            if seen == event:
                os.kill(os.getpid(), signal.SIGINT)
            seen += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        guarded(done)
    finally:
        sys.settrace(previous)
    return seen > event


def test_a_strike_at_every_line() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("something else handles SIGINT here")
    strikes = 0
    for event in range(1000):
        done: list[str] = []
        try:
            if not strike_at(event, done):
                break
        except KeyboardInterrupt:
            strikes += 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, f"after a strike at line {event}"
        assert "began" not in done or "booked" in done, f"a strike at line {event} left the books half written"
    assert strikes > 20
