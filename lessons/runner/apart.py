"""Apart: grades one file of answers in a process of its own, so that whatever it does ends with that process.

For a class's workbooks: nothing is written in their folders, and an answer that ends the process, or that no alarm
wakes, costs its own task only. It is no sandbox. What runs there has all that its user has, and an answer that wants to
can reach the very checks that judge it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from lessons.runner import guard
from lessons.runner.grading import Grade, Standing, grade
from lessons.runner.lesson import LESSONS, Lesson, find
from lessons.runner.workbook import load_answer

#: What a process may take before it runs the first line of an answer.
STARTING_SECONDS = 120
_MOST_BYTES = 10**6  # of what a process reports


def grades_apart(path: Path, lesson: Lesson, seconds: float = guard.LIMIT_SECONDS) -> list[Grade]:
    """All tasks of a lesson, in order.

    Args:
        path: the learner's file. One that is not there, or is still the stub, is not run: nothing is written in it.
        lesson: has an exercise.
        seconds: that a task may take, and the file's import.
    """
    numbers = range(1, len(lesson.tasks) + 1)
    try:
        there = path.is_file()
    except OSError as error:  # a folder that may not be entered
        return [Grade(task, "broken", f"{path} cannot be read: {error.strerror}") for task in numbers]
    if not there:
        return [Grade(task, "unwritten", f"there is no {path.name}") for task in numbers]
    if _is_stub(path, lesson):
        return [Grade(task, "unwritten", "the exercise as it was given out") for task in numbers]
    found: list[Grade] = []
    while len(found) < len(numbers):
        imported, more, why = _run(path.absolute(), lesson, len(found) + 1, seconds)
        found += more
        rest = numbers[len(found) :]  # the first of them ended the process, or without an import all of them do
        found += [Grade(task, "broken", why) for task in (rest[:1] if imported else rest)]
    return found


def _is_stub(path: Path, lesson: Lesson) -> bool:
    stub = lesson.folder / "exercise.py"
    with suppress(OSError):  # what cannot be read cannot be imported either, and is told so there
        return path.stat().st_size == stub.stat().st_size and path.read_bytes() == stub.read_bytes()
    return False


def _run(path: Path, lesson: Lesson, first: int, seconds: float) -> tuple[bool, list[Grade], str]:
    """One process, for the tasks from `first` on: whether the file was imported, grades, and why no more came."""
    num_parts = len(lesson.tasks) - first + 2  # the import is one
    limit = STARTING_SECONDS + num_parts * (seconds + guard.GRACE_SECONDS)
    why = "it ended the process"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile() as report:
        command = [sys.executable, "-B", "-m", __name__, str(path), lesson.slug, str(first), str(seconds)]
        paths = os.pathsep.join([str(LESSONS.parent), *filter(None, sys.path)])
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            stdout=report,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a group of its own, which is ended with it
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            why = f"it had not ended after {limit:g} seconds, and no alarm woke it"
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL) if sys.platform != "win32" else process.kill()
            process.wait()
        report.seek(0)
        lines = report.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    found = list(_read(lines[1:], first, len(lesson.tasks)))
    return lines[:1] == ["imported"], found, why


def _read(lines: list[str], first: int, last: int) -> Iterator[Grade]:
    """The grades as far as they are ones, in their order."""
    for task, line in zip(range(first, last + 1), lines, strict=False):
        try:
            one = Grade(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            return
        if one.task != task or one.standing not in get_args(Standing):
            return
        yield one


def _report(path: Path, lesson: Lesson, first: int) -> None:
    """In the process: a line for the import, and one for each task as soon as it is graded."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as report:
        os.dup2(2, 1)  # what an answer prints is no grade

        def say(line: str) -> None:
            print(line, file=report, flush=True)

        tasks = range(first, len(lesson.tasks) + 1)
        try:
            exercise = load_answer(path, lesson)
        except ValueError as error:
            say("imported")  # it was tried, and nothing was ended by it
            for task in tasks:
                say(json.dumps(asdict(Grade(task, "broken", str(error)))))
            return
        say("imported")
        for task in tasks:
            say(json.dumps(asdict(grade(lesson, exercise, task))))


if __name__ == "__main__":
    guard.LIMIT_SECONDS = float(sys.argv[4])
    try:
        _report(Path(sys.argv[1]), find(sys.argv[2]), int(sys.argv[3]))
    finally:
        os._exit(0)  # whatever threads and exit handlers an answer has left
