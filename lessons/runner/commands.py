"""`python -m lessons`: which lessons there are, and the learner's way through them.

Each command prints what it found and then the next command to type. Exit status: 0 well, 1 not passed, 2 bad input, 130
stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.syntax import Syntax

from lessons.runner import guard
from lessons.runner.class_grades import grade_class
from lessons.runner.grading import Grade, grades
from lessons.runner.lesson import Lesson, catalogue, find
from lessons.runner.workbook import Workbook

_USAGE = "python -m lessons"


def main(argv: Sequence[str] | None = None, console: Console | None = None) -> int:
    """Run a command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no such character shows a question mark
    console = console or Console(highlight=False)
    parser = _parser()
    # What stands behind `run N` is the lesson's own command line.
    own = argv.index("run") + 2 if "run" in argv else len(argv)
    argv, rest = argv[:own], argv[own:]
    args = parser.parse_args(argv)
    try:
        status: int = args.command(args, console, rest) if args.command is _run else args.command(args, console)
        return status
    except KeyboardInterrupt:
        print("\nlessons: stopped", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"lessons: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_USAGE, description="How an inference engine works, one question at a time.")
    parser.set_defaults(command=_list)
    parser.add_argument("--workbook", metavar="DIR", help="the workbook, if not the one that was started last")
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(name: str, help: str, function: object, *, lesson: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        sub.set_defaults(command=function)
        # Before the command or behind it. Suppressed, the latter does not overwrite the former when it is not there.
        sub.add_argument("--workbook", metavar="DIR", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if lesson:
            sub.add_argument("lesson", metavar="N", help="the lesson's number or name")
        return sub

    command("list", "all lessons, and how far you are", _list, lesson=False)
    start = command("start", "make a workbook: a folder of your own with the exercises", _start, lesson=False)
    start.add_argument("folder", metavar="DIR", type=Path, help="outside the clone, such as ../workbook")
    command("run", "see the lesson: the naive part, the real part, the score; its own options may follow", _run)
    check = command("check", "try your answer; N may be `all`", _check)
    check.add_argument("task", nargs="?", type=int, help="one task only")
    check.add_argument("--json", action="store_true", help="the grades as JSON, one object a line")
    hint = command("hint", "a hint for the task that you are at; the next one each time, up to three", _hint)
    hint.add_argument("task", nargs="?", type=int, help="for another task")
    solution = command("solution", "our answer, once yours passes", _solution)
    solution.add_argument("--show", action="store_true", help="even if it does not pass yet")
    command("reset", "begin again; what you wrote is kept beside it", _reset)
    grade = command("grade", "for a teacher: a class's handed-in workbooks, each run apart", _grade, lesson=False)
    grade.add_argument("folders", nargs="+", metavar="DIR", type=Path, help="one for each learner: handed-in/*")
    grade.add_argument(
        "--lesson", nargs="+", metavar="N", default=[], help="these only (default: all with an exercise)"
    )
    grade.add_argument(
        "--seconds", type=float, metavar="S", default=guard.LIMIT_SECONDS,
        help=f"that a task may take (default {guard.LIMIT_SECONDS:g})",
    )  # fmt: skip
    form = grade.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="tasks that pass, a line for each learner")
    form.add_argument("--json", action="store_true", help="each task, with what is wrong, one object a line")
    command("doctor", "what is installed, and where your workbook is", _doctor, lesson=False)
    return parser


# What there is -------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace, console: Console) -> int:
    workbook = Workbook.current(args.workbook)
    for lesson in catalogue():
        passed = workbook.passed(lesson) if workbook else set()
        marks = "".join("[green]●[/]" if n in passed else "○" for n in range(1, len(lesson.tasks) + 1))
        marks += " " * (4 - len(lesson.tasks))
        changed = " [dim](changed since)[/]" if workbook and workbook.is_changed(lesson) else ""
        console.print(f"{lesson.number:2}  {lesson.name:18} {marks} {lesson.question}{changed}", soft_wrap=True)
    console.print()
    if workbook is None:
        console.print("Each lesson: read its README, run it, write a part of it. ● passed, ○ to do")
        _next(console, "run 0", "start ../workbook")
        return 0
    console.print(f"Your workbook: {workbook.folder}", soft_wrap=True)
    todo = next((lesson for lesson in catalogue() if len(workbook.passed(lesson)) < len(lesson.tasks)), None)
    if todo is None:
        console.print("All tasks pass.")
    else:
        _next(console, f"run {todo.number}", f"check {todo.number}")
    return 0


def _start(args: argparse.Namespace, console: Console) -> int:
    workbook, made = Workbook.start(args.folder)
    for path in made:
        console.print(f"  {path.name}", soft_wrap=True)
    what = f"{len(made)} exercises are in" if made else "Nothing is new in"
    console.print(f"{what} {workbook.folder}. Open them in your editor; the clone stays as it is.", soft_wrap=True)
    _next(console, "run 0", "check 0")
    return 0


def _run(args: argparse.Namespace, console: Console, rest: Sequence[str]) -> int:
    lesson = find(args.lesson)
    workbook = ["--workbook", args.workbook] if args.workbook else []
    status: int = import_module(f"lessons.{lesson.slug}.__main__").main([*workbook, *rest])
    return status


def _doctor(args: argparse.Namespace, console: Console) -> int:
    from minipaged.cli import main as minipaged

    status = minipaged(["doctor"])
    workbook = Workbook.current(args.workbook)
    if workbook is None:
        console.print(f"workbook   none; `{_USAGE} start ../workbook` makes one")
        return status
    console.print(f"workbook   {workbook.folder}", soft_wrap=True)
    for lesson in _with_exercise():
        try:
            workbook.load(lesson)
        except ValueError as error:
            console.print(f"           [red]{escape(str(error))}[/]", soft_wrap=True)
            status = 1
    return status


# Answers -------------------------------------------------------------------------------------------------------------


def _check(args: argparse.Namespace, console: Console) -> int:
    workbook = _require_workbook(args)
    chosen = _with_exercise() if args.lesson == "all" else [_find_exercise(args)]
    if args.task is not None and args.lesson != "all":
        _require_task(chosen[0], args.task)
    good = True
    for lesson in chosen:
        try:
            # What an answer prints is no JSON.
            with redirect_stdout(sys.stderr) if args.json else nullcontext():
                found = grades(lesson, workbook.load(lesson))
        except ValueError as error:
            if args.lesson != "all":
                raise
            found = [Grade(task, "broken", str(error)) for task in range(1, len(lesson.tasks) + 1)]
        if args.task is not None:
            found = [grade for grade in found if grade.task == args.task]
        if args.json:
            for grade in found:
                print(json.dumps({"lesson": lesson.number, "task": grade.task, "standing": grade.standing}))
        else:
            _print_grades(console, lesson, found)
        workbook.record(lesson, {grade.task: grade.passed for grade in found})  # last: a full disk hides no grade
        good = good and all(grade.passed for grade in found)
    if not args.json:
        _after_check(console, workbook, chosen, good)
    return 0 if good else 1


def _grade(args: argparse.Namespace, console: Console) -> int:
    if not 0 < args.seconds < 1e6:
        raise ValueError(f"grade: --seconds is {args.seconds:g}; it must be above 0, and below a million")
    chosen = list(dict.fromkeys(_exercise(name) for name in args.lesson)) or _with_exercise()
    form = "csv" if args.csv else "json" if args.json else "table"
    grade_class(console, args.folders, chosen, args.seconds, form)
    return 0


def _print_grades(console: Console, lesson: Lesson, found: Sequence[Grade]) -> None:
    """One line per task; what is wrong of the first that is, since the others often follow from it."""
    told = False
    for grade in found:
        task = lesson.tasks[grade.task - 1]
        mark = {"passed": "[green]✓[/]", "unwritten": "[dim]○[/]"}.get(grade.standing, "[red]✗[/]")
        console.print(f"{mark} lesson {lesson.number}, task {grade.task}: {escape(task.title)}", soft_wrap=True)
        if grade.passed or told:
            continue
        told = True
        if grade.standing == "unwritten":
            console.print(f"    not written yet ({escape(grade.what)})", soft_wrap=True)
            continue
        console.print(f"    {escape(grade.what)}", soft_wrap=True)
        for name, text in (("got", grade.got), ("expected", grade.expected)):
            if text:
                console.print(f"    {name:9} " + escape(text).replace("\n", "\n" + " " * 14), soft_wrap=True)
        if grade.because:
            console.print(f"    [yellow]{escape(grade.because)}[/]", soft_wrap=True)


def _after_check(console: Console, workbook: Workbook, chosen: Sequence[Lesson], good: bool) -> None:
    if len(chosen) > 1:
        done = sum(len(workbook.passed(lesson)) for lesson in catalogue())
        console.print(f"\n{done} of {sum(len(lesson.tasks) for lesson in catalogue())} tasks pass.")
        return
    number = chosen[0].number
    console.print()
    if not good:
        _next(console, f"hint {number}")
    elif len(workbook.passed(chosen[0])) < len(chosen[0].tasks):
        _next(console, f"check {number}")
    else:
        after = [lesson.number for lesson in catalogue() if lesson.number > number][:1]
        _next(console, f"run {number} --mine", f"solution {number}", *(f"run {n}" for n in after))


def _hint(args: argparse.Namespace, console: Console) -> int:
    lesson, workbook = _find_exercise(args), _require_workbook(args)
    passed = workbook.passed(lesson)
    task = args.task
    if task is None:
        task = next((n for n in range(1, len(lesson.tasks) + 1) if n not in passed), 1)
    _require_task(lesson, task)
    layers = hints(lesson)[task]
    layer = workbook.next_hint(lesson, task, len(layers))
    console.print(f"[bold]lesson {lesson.number}, task {task}: {escape(lesson.tasks[task - 1].title)}[/]")
    console.print(f"[dim]hint {layer} of {len(layers)}[/]\n")
    console.print(Markdown(layers[layer - 1]))
    console.print()
    _next(console, f"check {lesson.number} {task}", *([f"hint {lesson.number} {task}"] if layer < len(layers) else []))
    return 0


def hints(lesson: Lesson) -> dict[int, list[str]]:
    """Each task's hints, from a nudge to nearly the answer: the layers `### 1`, `### 2`, `### 3` below `## Task N`."""
    text = (lesson.folder / "hints.md").read_text(encoding="utf-8")
    found: dict[int, list[str]] = {}
    for heading, body in re.findall(r"^## Task (\d+)[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        found[int(heading)] = [part.strip() for part in re.split(r"^### \d+[^\n]*$", body, flags=re.M)[1:]]
    return found


def _solution(args: argparse.Namespace, console: Console) -> int:
    lesson, workbook = _find_exercise(args), Workbook.current(args.workbook)
    passed = len(workbook.passed(lesson)) if workbook else 0
    if passed < len(lesson.tasks) and not args.show:
        console.print(f"{passed} of {len(lesson.tasks)} tasks pass. Yours first; then ours is here.")
        _next(console, f"hint {lesson.number}", f"solution {lesson.number} --show")
        return 1
    text = (lesson.folder / "solution.py").read_text(encoding="utf-8")
    if console.is_terminal:
        console.print(Syntax(text, "python", theme="ansi_dark", word_wrap=True))  # a narrow terminal must not crop it
    else:
        console.print(text.rstrip(), markup=False, soft_wrap=True)
    return 0


def _reset(args: argparse.Namespace, console: Console) -> int:
    lesson, workbook = _find_exercise(args), _require_workbook(args)
    kept = workbook.reset(lesson)
    where = f"; what you wrote is in {kept.name}" if kept else ""
    console.print(f"{workbook.path(lesson)} is as it was at the start{where}.", soft_wrap=True)
    _next(console, f"check {lesson.number}")
    return 0


# Within --------------------------------------------------------------------------------------------------------------


def _require_workbook(args: argparse.Namespace) -> Workbook:
    workbook = Workbook.current(args.workbook)
    if workbook is None:
        raise ValueError(f"there is no workbook yet; `{_USAGE} start ../workbook` makes one")
    return workbook


def _with_exercise() -> list[Lesson]:
    return [lesson for lesson in catalogue() if lesson.has_exercise]


def _find_exercise(args: argparse.Namespace) -> Lesson:
    return _exercise(args.lesson)


def _exercise(name: str) -> Lesson:
    """The lesson that is named.

    Raises:
        ValueError: there is none, or there is nothing to write in it.
    """
    lesson = find(name)
    if not lesson.has_exercise:
        number = lesson.number
        raise ValueError(f"lesson {number} has nothing to write; `{_USAGE} run {number} --mine` runs it on your parts")
    return lesson


def _require_task(lesson: Lesson, task: int) -> None:
    if not 1 <= task <= len(lesson.tasks):
        raise ValueError(f"lesson {lesson.number} has no task {task}; it has 1 to {len(lesson.tasks)}")


def _next(console: Console, *commands: str) -> None:
    """The next command to type."""
    console.print("Next: " + "   or: ".join(f"[bold]{_USAGE} {command}[/]" for command in commands), soft_wrap=True)
