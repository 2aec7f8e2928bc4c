"""Guard: runs what a learner wrote, and lets it take nothing else with it.

It ends what does not end, and puts back what belongs to all lessons alike: the working directory, where output goes,
torch's defaults. It does not know what is run; nor can it keep an answer from ending the process with `os._exit`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LIMIT_SECONDS: float = 60
#: After so many more the process ends: the answer swallows every error, or is in a call that Python cannot interrupt.
GRACE_SECONDS = 30
MOST_CHARACTERS = 1000  # of what is shown of an answer


class TooLong(BaseException):
    """Not an Exception, so that an answer's own `except Exception` does not swallow it."""

    def __str__(self) -> str:
        return f"it had not ended after {LIMIT_SECONDS:g} seconds"


@contextmanager
def guard() -> Iterator[None]:
    """Raises `TooLong` in whatever runs too long, where the system has an alarm clock; then puts things back."""
    out, err = sys.stdout, sys.stderr
    try:
        directory = os.getcwd()
    except OSError:  # somebody has deleted it
        directory = None
    torch = sys.modules.get("torch")
    dtype = torch.get_default_dtype() if torch else None
    grad = torch.is_grad_enabled() if torch else True
    try:
        with _time_limit():
            yield
    finally:
        if directory is not None:
            with suppress(OSError):
                os.chdir(directory)
        sys.stdout, sys.stderr = out, err
        torch = sys.modules.get("torch")
        if torch:
            torch.set_default_dtype(dtype or torch.float32)
            torch.set_grad_enabled(grad)


def text_of(error: BaseException) -> str:
    """An error's type and what it says, if it can say anything."""
    try:
        said = str(error)
    except Exception:
        said = ""
    return short(f"{type(error).__name__}: {said}".rstrip(": "))


def short(text: str) -> str:
    """Its beginning, and how much more there is."""
    more = len(text) - MOST_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CHARACTERS]} … and {more:,} more characters"


@contextmanager
def _time_limit() -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS, 1)  # and again, should the first be swallowed
    if sys.stdout is not None:
        sys.stdout.flush()  # a process that ends so leaves its last lines behind
    faulthandler.dump_traceback_later(LIMIT_SECONDS + GRACE_SECONDS, exit=True, file=2)  # stderr, whoever replaced it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
