"""Grades: runs a lesson's checks over a module and says of each task how it stands.

It knows nothing of files: `workbook.py` loads the learner's module. An answer that never ends is stopped.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from lessons.runner.checks import Wrong
from lessons.runner.guard import TooLong, guard, short, text_of
from lessons.runner.lesson import Lesson

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
        with guard():
            check(exercise)
    except Wrong as wrong:
        return Grade(task, "wrong", wrong.what, _shown(wrong.got), _shown(wrong.expected), wrong.because)
    except NotImplementedError as stub:
        if _is_stub(stub):
            return Grade(task, "unwritten", short(str(stub) or "NotImplementedError"))
        return Grade(task, "broken", "it raised an error", _where(stub, exercise))
    except TooLong as late:
        return Grade(task, "broken", str(late), "a loop that does not end?")
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        return Grade(task, "broken", "it ended the program", _where(error, exercise))
    except BaseException as error:  # an answer may raise anything
        return Grade(task, "broken", "it raised an error", _where(error, exercise))
    return Grade(task, "passed")


def grades(lesson: Lesson, exercise: ModuleType) -> list[Grade]:
    """All tasks of a lesson, in order."""
    return [grade(lesson, exercise, number) for number in range(1, len(lesson.tasks) + 1)]


def _shown(value: object) -> str:
    try:
        return short(value if isinstance(value, str) else repr(value))
    except Exception as error:
        return f"a {type(value).__name__} that cannot be shown ({text_of(error)})"


def _is_stub(error: NotImplementedError) -> bool:
    """Whether somebody wrote `raise NotImplementedError`. torch raises it, too, for what it cannot do."""
    frames = traceback.extract_tb(error.__traceback__)
    written = bool(frames) and (frames[-1].line or "").startswith("raise")
    return written or re.match(r"lesson \d+, task", str(error)) is not None


def _where(error: BaseException, exercise: ModuleType) -> str:
    """The error with the last line of the learner's file that it passed through."""
    said = text_of(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == exercise.__file__]
    return f"{said}\n(line {frames[-1].lineno}: {frames[-1].line})" if frames else said
