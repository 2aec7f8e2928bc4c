"""Grades: runs a lesson's checks over a module and says of each task how it stands.

It knows nothing of files: `workbook.py` loads the learner's module. An answer that never ends is stopped.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from lessons.runner.checks import Wrong
from lessons.runner.lesson import Lesson

LIMIT_SECONDS = 60
Standing = Literal["passed", "unwritten", "wrong", "broken"]


@dataclass(frozen=True, slots=True)
class Grade:
    """How one task stands.

    Args:
        task: from 1.
        standing: "passed"; "unwritten", the stub is still there; "wrong", with what came out; "broken", it raised.
        what, got, expected, because: see `Wrong`; of a broken answer `got` is the error, and where it was raised.
    """

    task: int
    standing: Standing
    what: str = ""
    got: str = ""
    expected: str = ""
    because: str = ""

    @property
    def passed(self) -> bool:
        return self.standing == "passed"


def grade(lesson: Lesson, exercise: ModuleType, task: int) -> Grade:
    """Check one task of `exercise`, from 1."""
    check = getattr(lesson.module("check"), f"task_{task}")
    try:
        with _time_limit():
            check(exercise)
    except Wrong as wrong:
        return Grade(task, "wrong", wrong.what, _shown(wrong.got), _shown(wrong.expected), wrong.because)
    except NotImplementedError as stub:
        return Grade(task, "unwritten", str(stub))
    except _TooLong:
        return Grade(task, "broken", f"it had not ended after {LIMIT_SECONDS} seconds", "a loop that does not end?")
    except Exception as error:
        return Grade(task, "broken", "it raised an error", _where(error, exercise))
    return Grade(task, "passed")


def grades(lesson: Lesson, exercise: ModuleType) -> list[Grade]:
    """All tasks of a lesson, in order."""
    return [grade(lesson, exercise, number) for number in range(1, len(lesson.tasks) + 1)]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _where(error: Exception, exercise: ModuleType) -> str:
    """The error with the last line of the learner's file that it passed through."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == exercise.__file__]
    return f"{said}\n(line {frames[-1].lineno}: {frames[-1].line})" if frames else said


class _TooLong(BaseException):
    """Not an Exception, so that an answer's own `except Exception` does not swallow it."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raises `_TooLong` in whatever runs too long, where the system has an alarm clock."""
    if sys.platform == "win32":
        yield
        return

    def ring(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
