"""Class grades: the handed-in workbooks of a class as a table, CSV or JSON.

It knows folders and grades; how an answer is run, `apart.py` knows. A row is printed as soon as it is known.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from lessons.runner.apart import grades_apart
from lessons.runner.grading import Grade
from lessons.runner.lesson import Lesson, catalogue


def grade_class(
    console: Console, folders: Sequence[Path], lessons: Sequence[Lesson], seconds: float, form: str
) -> None:
    """Grade, and print.

    Args:
        console: where the table goes; CSV and JSON go to standard output.
        folders: one for each learner, with files named as a workbook's.
        lessons: those that are graded; each has an exercise.
        seconds: that a task may take.
        form: "table", "csv" (a row for each folder: tasks that pass, by lesson) or "json" (a line for each task).

    Raises:
        ValueError: one of the folders is none, or none of them has a workbook's file. Nothing has been run then.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"grade: {folder} is no folder; give one for each learner, such as handed-in/*")
    if not any(_is_there(folder / f"{lesson.slug}.py") for folder in folders for lesson in catalogue()):
        others = ", nor in the others" if folders[1:] else ""
        raise ValueError(
            f"grade: there is no {lessons[0].slug}.py or the like in {folders[0]}{others}; "
            "give one folder for each learner, such as handed-in/*"
        )
    names = _names(folders)
    width = max(map(len, ["lesson", *names]))
    rows = csv.writer(sys.stdout, lineterminator="\n")
    num_tasks = sum(len(lesson.tasks) for lesson in lessons)
    if form == "csv":
        rows.writerow(["workbook", *(lesson.number for lesson in lessons), "passed", "tasks"])
    elif form == "table":
        numbers = "".join(f"{lesson.number:5}" for lesson in lessons)
        console.print(f"{'lesson':{width}}{numbers}   passed", soft_wrap=True)
    for name, folder in zip(names, folders, strict=True):
        found = {}
        for lesson in lessons:
            found[lesson] = grades_apart(folder / f"{lesson.slug}.py", lesson, seconds)
            if form == "json":
                for grade in found[lesson]:
                    print(json.dumps({"workbook": name, "lesson": lesson.number, **asdict(grade)}), flush=True)
        passed = [sum(grade.passed for grade in grades) for grades in found.values()]
        if form == "csv":
            rows.writerow([name, *passed, sum(passed), num_tasks])
            sys.stdout.flush()
        elif form == "table":
            cells = "".join(map(_cell, found.values()))
            console.print(f"{escape(name.ljust(width))}{cells}  {sum(passed):3} of {num_tasks}", soft_wrap=True)


def _names(folders: Sequence[Path]) -> list[str]:
    """What tells the folders apart: their own names or, where two are alike (ada/workbook, ben/workbook), the paths."""
    names = [Path(os.path.abspath(folder)).name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    return [" ".join(name.split()) for name in names]  # a row is one line


def _is_there(path: Path) -> bool:
    with suppress(OSError):
        return path.exists()
    return True  # of what cannot even be looked at, its own row says so


def _cell(grades: Sequence[Grade]) -> str:
    """Tasks that pass, of all; a dot where nothing was written."""
    passed = sum(grade.passed for grade in grades)
    if all(grade.standing == "unwritten" for grade in grades):
        return "    ·"
    return f"  [{'green' if passed == len(grades) else 'red'}]{passed}/{len(grades)}[/]"
