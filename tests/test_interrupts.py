"""A signal at any line of the machinery that holds it back: it strikes once, and the next one finds it as before."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from minipaged import interrupts
from minipaged.interrupts import Uninterrupted

WATCHED = {interrupts.__file__, contextlib.__file__, signal.__file__, __file__}
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Ended(BaseException):
    """What the program's own handler raises."""


def end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[dict[int, Any]]:
    """A program that has a function for SIGTERM and SIGHUP, as the show in a terminal does."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("something else handles SIGINT here")
    found = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS[1:]:
        signal.signal(number, end)
    yield {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: end, signal.SIGHUP: end}
    for number, handler in found.items():
        signal.signal(number, handler)


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


def strike_at(event: int, number: int, done: list[str]) -> bool:
    """Run it with a signal at its `event`-th traced line; False when it has not so many."""
    seen = 0

    def trace(frame: FrameType, kind: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in WATCHED:
            return None
        if kind == "line":
            if seen == event:
                os.kill(os.getpid(), number)
            seen += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        guarded(done)
    finally:
        sys.settrace(previous)
    return seen > event


@pytest.mark.parametrize("number", SIGNALS)
def test_a_strike_at_every_line(number: int, handlers: dict[int, Any]) -> None:
    strikes = 0
    for event in range(1000):
        done: list[str] = []
        try:
            if not strike_at(event, number, done):
                break
        except (KeyboardInterrupt, Ended):
            strikes += 1
        for other, handler in handlers.items():
            assert signal.getsignal(other) is handler, f"{other} after a strike at line {event}"
        assert "began" not in done or "booked" in done, f"a strike at line {event} left the books half written"
    assert strikes > 20


@pytest.mark.parametrize("number", SIGNALS)
def test_it_waits_for_the_books(number: int) -> None:
    done = []
    with pytest.raises((KeyboardInterrupt, Ended)), Uninterrupted() as held:
        os.kill(os.getpid(), number)
        done.append("written")
        with held.allowed():
            done.append("never")
    assert done == ["written"]


def test_of_two_both_get_their_turn() -> None:
    """Whoever swallows the first meets the second."""
    with pytest.raises(KeyboardInterrupt) as struck, Uninterrupted():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert isinstance(struck.value.__context__, Ended)


def test_what_nobody_handles_and_what_somebody_else_does_stays_as_it_is() -> None:
    came: list[int] = []
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    with Uninterrupted() as held:
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGINT)
        assert came == [signal.SIGINT], "at once: it raises nothing"
        with held.allowed():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, "what was decided within is not undone"
