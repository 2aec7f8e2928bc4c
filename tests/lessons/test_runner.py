"""`python -m lessons`: a learner's way from `start` to a solved exercise, and what it says when something is wrong."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from lessons.runner import checks, commands, guard, stage, workbook
from lessons.runner.grading import grade
from lessons.runner.lesson import Lesson, catalogue, find
from lessons.runner.mine import Mine
from lessons.runner.numbers import parse_number
from lessons.runner.workbook import CLONE, Workbook

LESSON = find("block_table")


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbook:
    """A fresh workbook, remembered by nobody but this test."""
    monkeypatch.setattr(workbook, "REMEMBERED", tmp_path / "remembered")
    monkeypatch.delenv("MINIPAGED_WORKBOOK", raising=False)
    made, files = Workbook.start(tmp_path / "book")
    assert [path.name for path in files] == [f"{lesson.slug}.py" for lesson in catalogue() if lesson.has_exercise]
    return made


def said(*arguments: str, status: int = 0) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert commands.main(list(arguments), console) == status
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def write(book: Workbook, text: str) -> None:
    book.path(LESSON).write_text(text, encoding="utf-8")


def solve(book: Workbook) -> None:
    write(book, f"from lessons.{LESSON.slug}.solution import *")


# The way through -----------------------------------------------------------------------------------------------------


def test_a_learner_goes_from_a_stub_to_a_solution(book: Workbook) -> None:
    number = str(LESSON.number)
    assert "python -m lessons hint" in said("check", number, status=1)
    assert "hint 1 of 3" in said("hint", number)
    assert "hint 2 of 3" in said("hint", number)
    assert "--show" in said("solution", number, status=1)

    solve(book)
    done = said("check", number)
    assert "✗" not in done and f"run {number} --mine" in done
    assert "def allocate" in said("solution", number)
    assert "●" * len(LESSON.tasks) in said("list")
    write(book, book.path(LESSON).read_text() + "\n# a thought")
    assert "(changed since)" in said("list")


def test_a_solution_is_shown_before_to_who_insists(book: Workbook) -> None:
    assert "def allocate" in said("solution", str(LESSON.number), "--show")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_narrow_terminal_does_not_crop_the_solution(book: Workbook, is_terminal: bool) -> None:
    """Its lines are up to 120 cells long."""
    console = Console(file=io.StringIO(), width=60, force_terminal=is_terminal, color_system=None)
    assert commands.main(["solution", str(LESSON.number), "--show"], console) == 0
    assert isinstance(console.file, io.StringIO)
    ours = (LESSON.folder / "solution.py").read_text(encoding="utf-8")
    assert "".join(console.file.getvalue().split()) == "".join(ours.split())


def test_the_workbook_may_be_named_behind_the_command(book: Workbook, tmp_path: Path) -> None:
    number = str(LESSON.number)
    assert str(book.folder) in said("reset", number, "--workbook", str(book.folder))
    said("reset", number, "--workbook", str(tmp_path / "none"), status=2)


def test_one_task_alone(book: Workbook) -> None:
    assert "task 2" in said("check", str(LESSON.number), "2", status=1)
    assert "task 1" not in said("check", str(LESSON.number), "2", status=1)


def test_everything_at_once_and_for_a_machine(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    solve(book)
    said("check", "all", "--json", status=1)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == sum(len(lesson.tasks) for lesson in catalogue())
    for row in found:
        assert row["standing"] == ("passed" if row["lesson"] == LESSON.number else "unwritten"), row


def test_reset_keeps_what_was_written(book: Workbook) -> None:
    write(book, "# first\n")
    assert "old1" in said("reset", str(LESSON.number))
    write(book, "# second\n")
    assert "old2" in said("reset", str(LESSON.number))
    kept = sorted(path.read_text() for path in book.folder.glob("*.old*"))
    assert kept == ["# first\n", "# second\n"]
    assert book.path(LESSON).read_text() == (LESSON.folder / "exercise.py").read_text()


def test_start_again_touches_no_answer(book: Workbook) -> None:
    solve(book)
    answer = book.path(LESSON).read_text()
    assert "Nothing is new" in said("start", str(book.folder))
    assert book.path(LESSON).read_text() == answer


def test_with_mine_the_learners_parts_are_in_the_engine(book: Workbook) -> None:
    nothing = Mine.of(book, upto=99)
    assert nothing.answers == {} and nothing.left_out == {}
    solve(book)
    mine = Mine.of(book, upto=99)
    assert list(mine.answers) == [LESSON.number]
    assert mine.parts() != nothing.parts()
    assert Mine.of(book, upto=LESSON.number - 1).answers == {}
    assert any("yours" in line for line in mine.describe())


def test_a_lesson_runs_with_the_parts_of_a_named_workbook(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    solve(book)
    workbook.REMEMBERED.unlink()
    said("--workbook", str(book.folder), "run", str(LESSON.number), "--small", "--mine")
    assert f"lesson  {LESSON.number}: yours" in capsys.readouterr().out
    said("run", str(LESSON.number), "--small", "--mine", status=2)
    assert "start ../workbook" in capsys.readouterr().err


def test_a_part_that_does_not_pass_is_left_out(book: Workbook) -> None:
    name = next(iter(LESSON.module("check").MISCONCEPTIONS))
    write(book, f"from lessons.{LESSON.slug}.mistakes.{name} import *")
    mine = Mine.of(book, upto=99)
    assert mine.answers == {} and "does not pass" in mine.left_out[LESSON.number]


def test_a_lesson_without_an_exercise_is_no_stumbling_block(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    without = [lesson for lesson in catalogue() if not lesson.has_exercise]
    for lesson in without:
        assert not book.path(lesson).exists()
        for command in ("check", "hint", "solution", "reset"):
            said(command, str(lesson.number), status=2)
            error = capsys.readouterr().err
            assert f"run {lesson.number} --mine" in error and len(error.splitlines()) == 1
        assert "task" not in said("check", "all", "--json", status=1)
    said("doctor")
    assert all(lesson.name in said("list") for lesson in without)


# What goes wrong -----------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_shown_with_what_should_be(book: Workbook) -> None:
    name, because = next(iter(LESSON.module("check").MISCONCEPTIONS.items()))
    write(book, f"from lessons.{LESSON.slug}.mistakes.{name} import *")
    text = " ".join(said("check", str(LESSON.number), status=1).split())
    assert "got" in text and "expected" in text and " ".join(because.split()) in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(:\n", "line 1"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
        ("raise RuntimeError('on import')\n", "RuntimeError: on import"),
    ],
)
def test_a_file_that_cannot_be_imported_gets_one_line(
    book: Workbook, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    write(book, text)
    said("check", str(LESSON.number), status=2)
    error = capsys.readouterr().err
    assert told in error and len(error.splitlines()) == 1
    assert "broken" not in said("check", "all", status=1)  # the others are checked all the same


def test_an_answer_that_raises_says_in_which_line(book: Workbook) -> None:
    solve(book)
    text = book.path(LESSON).read_text()
    write(book, f"{text}\n\nclass BlockTable:\n    def __init__(self, block_size):\n        1 / 0\n")
    found = said("check", str(LESSON.number), status=1)
    assert "ZeroDivisionError" in found and "1 / 0" in found


def test_an_answer_that_never_ends_is_stopped(book: Workbook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LIMIT_SECONDS", 0.2)
    solve(book)
    text = book.path(LESSON).read_text()
    write(book, f"{text}\n\nclass BlockTable:\n    def __init__(self, block_size):\n        while True: pass\n")
    assert "not ended" in said("check", str(LESSON.number), status=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "99"],
        ["check", "9" * 5000],
        ["hint", str(LESSON.number), "0"],
        ["run", "nothing"],
        ["hint", str(LESSON.number), "9"],
        ["check", str(LESSON.number), "0"],
    ],
)
def test_bad_input_gets_one_line(book: Workbook, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    said(*arguments, status=2)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_workbook_must_not_lie_in_the_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said("start", str(workbook.CLONE / "answers"), status=2)
    assert "inside the clone" in capsys.readouterr().err
    assert not (workbook.CLONE / "answers").exists()


def test_without_a_workbook_the_way_to_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workbook, "REMEMBERED", tmp_path / "nothing")
    monkeypatch.delenv("MINIPAGED_WORKBOOK", raising=False)
    assert "start" in said("list")
    said("check", str(LESSON.number), status=2)
    assert "python -m lessons start" in capsys.readouterr().err
    said("--workbook", str(tmp_path / "none"), "check", str(LESSON.number), status=2)
    assert "is no workbook" in capsys.readouterr().err


# The stage -----------------------------------------------------------------------------------------------------------


def play(guess: float | None, measured: float, ours: float = 505) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    on = stage.Stage(LESSON, console, guesses=[] if guess is None else [guess])
    on.score(on.predict("slots lost", ours, "slots"), measured)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_score_line_has_all_three() -> None:
    assert " ".join(play(None, 505).split()) == "score slots lost: yours — ours 505 measured 505 slots"
    assert "yours 300" in play(300, 505) and "1.68 times below" in play(300, 505)
    assert "exactly" in play(505, 505)
    assert "within 5%" in play(530, 505)
    assert "off by 3" in play(3, 0)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,000", 1000), ("1,234,567.5", 1234567.5), ("12 %", 12), ("3e6", 3e6), ("4k", 4000), ("2.5×", 2.5), ("-1", -1)],
)
def test_numbers_as_people_write_them(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["many", "0,5", "1,0000", ",", "nan", "inf"])
def test_what_is_no_number_is_refused(text: str) -> None:
    """A comma for a point least of all in silence: 0,5 would be taken for 5."""
    with pytest.raises(ValueError, match="is no number"):
        parse_number(text)


def test_expectations() -> None:
    checks.expect("sum", 2, 2)
    with pytest.raises(checks.Wrong):
        checks.expect("sum", 1, 2)
    checks.expect_close("share", 0.1 + 0.2, 0.3)
    with pytest.raises(checks.Wrong):
        checks.expect_close("share", float("nan"), 0.3)
    checks.expect_error("a bad call", ValueError, lambda: int("x"))
    with pytest.raises(checks.Wrong):
        checks.expect_error("a bad call", ValueError, lambda: 1)
    with pytest.raises(NotImplementedError):
        checks.expect_error("a stub", ValueError, _stub)


def _stub() -> None:
    raise NotImplementedError("lesson 5, task 1: …")


def test_lessons_are_found_by_number_and_name() -> None:
    assert find("05") is find("5") is find(LESSON.slug) is find(LESSON.name) is LESSON
    assert isinstance(LESSON, Lesson)


# Attacks -------------------------------------------------------------------------------------------------------------


def allocates(book: Workbook, body: str) -> None:
    """An answer that does this when it is asked for a block."""
    head = f"from lessons.{LESSON.slug}.solution import *\n_Ours = BlockPool\n"
    write(book, f"{head}class BlockPool(_Ours):\n    def allocate(self):\n        {body}\n")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import sys; sys.exit(0)", "it ended the program"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("return self.allocate()", "RecursionError"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "Mute"),
        ("return type('Odd', (), {'__repr__': lambda self: 1 / 0})()", "a Odd that cannot be shown"),
        ("import torch; return torch.zeros(3)", "tensor([0., 0., 0.])"),
        ("return float(_Ours.allocate(self))", "0, 1 or 2"),
        ("return [0] * 1_000_000", "more characters"),
        ("import torch; return torch.empty(1, device='meta').item()", "it raised an error"),
    ],
)
def test_no_answer_takes_the_check_with_it(book: Workbook, body: str, told: str) -> None:
    allocates(book, body)
    text = said("check", str(LESSON.number), "1", status=1)
    assert told in text and len(text) < 3000


def test_an_answer_leaves_all_as_it_was(book: Workbook, tmp_path: Path) -> None:
    """What is set for the whole process must not reach the other lessons."""
    before = (Path.cwd(), sys.stdout, torch.get_default_dtype(), torch.is_grad_enabled())
    mess = "import os, sys, torch; os.chdir('/'); sys.stdout = None; torch.set_default_dtype(torch.float64); "
    mess += "torch.set_grad_enabled(False)"
    allocates(book, f"{mess}; return super().allocate()")
    book.path(LESSON).write_text(f"{mess}\n{book.path(LESSON).read_text()}")
    assert "✗" not in said("check", str(LESSON.number), "1")
    assert (Path.cwd(), sys.stdout, torch.get_default_dtype(), torch.is_grad_enabled()) == before


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n            try: sum(1 for _ in iter(int, 1))\n            except BaseException: pass",
        "sum(iter(int, 1))",
    ],
)
def test_an_answer_that_cannot_be_stopped_ends_with_the_process(book: Workbook, body: str) -> None:
    """One swallows every error, the other never comes back to Python."""
    allocates(book, body)
    code = "from lessons.runner import guard, commands; guard.LIMIT_SECONDS = guard.GRACE_SECONDS = 0.2; "
    code += f"commands.main(['--workbook', {str(book.folder)!r}, 'check', '{LESSON.number}', '1'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=CLONE)
    assert ended.returncode == 1 and book.path(LESSON).name in ended.stderr


@pytest.mark.parametrize("text", ["while True: pass\n", ""])
def test_ctrl_c_gets_one_line_and_spoils_no_progress(
    book: Workbook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    solve(book)
    said("check", str(LESSON.number))
    before = (book.folder / "progress.json").read_text()
    write(book, "raise KeyboardInterrupt") if text else allocates(book, "raise KeyboardInterrupt")
    said("check", str(LESSON.number), status=130)
    assert capsys.readouterr().err.strip() == "lessons: stopped"
    assert (book.folder / "progress.json").read_text() == before


@pytest.mark.parametrize("text", ["import sys; sys.exit(0)", "raise BaseException('a\\nb')", "\0", "def f(): f()\nf()"])
def test_whatever_a_file_does_when_imported_is_one_line(
    book: Workbook, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    write(book, text)
    said("check", str(LESSON.number), status=2)
    error = capsys.readouterr().err
    assert LESSON.slug in error and len(error.splitlines()) == 1 and "None" not in error


def test_a_folder_in_the_place_of_a_file(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    solve(book)
    said("check", str(LESSON.number))
    book.path(LESSON).unlink()
    book.path(LESSON).mkdir()
    said("check", str(LESSON.number), status=2)
    assert "is no file" in capsys.readouterr().err
    assert "(changed since)" in said("list")
    said("reset", str(LESSON.number))
    assert book.path(LESSON).is_file()


def test_json_is_nothing_but_json(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    allocates(book, "print('noise'); return super().allocate()")
    book.path(LESSON).write_text(f"print('noise')\n{book.path(LESSON).read_text()}")
    said("check", str(LESSON.number), "--json")
    out = capsys.readouterr().out
    assert [json.loads(line)["standing"] for line in out.splitlines()] == ["passed"] * len(LESSON.tasks)
    book_, number = str(book.folder), str(LESSON.number)
    said("--workbook", book_, "run", number, "--small", "--mine", "--json")
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "kept",
    ["3", "[]", '{"passed": [1]}', '{"passed": {"x": "a"}}', '{"passed": {"1": 5}}', '{"hints": {"1": "z"}}', "{"],
)
def test_progress_that_is_none_gets_one_line(book: Workbook, capsys: pytest.CaptureFixture[str], kept: str) -> None:
    (book.folder / "progress.json").write_text(f'{{"{LESSON.slug}": {kept}}}')
    for command in (["list"], ["check", "5"], ["hint", "5"], ["solution", "5"], ["reset", "5"]):
        said(*command, status=2)
        error = capsys.readouterr().err
        assert "delete it and `start` again" in error and len(error.splitlines()) == 1


def test_progress_of_a_later_version_is_kept(book: Workbook) -> None:
    path = book.folder / "progress.json"
    path.write_text(f'{{"{LESSON.slug}": {{"passed": {{"9": "a"}}, "more": 1}}, "lesson99_next": 7}}')
    assert Workbook(book.folder).passed(LESSON) == set()
    said("hint", str(LESSON.number))
    kept = json.loads(path.read_text())
    assert kept["lesson99_next"] == 7 and kept[LESSON.slug]["more"] == 1


def test_two_processes_do_not_forget_each_others_progress(book: Workbook) -> None:
    other = Workbook(book.folder)
    book.record(LESSON, {1: True})
    other.record(find("kv_cache"), {2: True})
    now = Workbook(book.folder)
    assert now.passed(LESSON) == {1} and now.passed(find("kv_cache")) == {2}
    assert not list(book.folder.glob("*.new*"))


def test_a_part_that_fails_in_the_engine_gets_one_line(book: Workbook, capsys: pytest.CaptureFixture[str]) -> None:
    """It passes its check, whose pools are small."""
    allocates(book, "return super().allocate() if self.num_blocks < 9 else 1 // 0")
    said("check", str(LESSON.number))
    said("--workbook", str(book.folder), "run", str(LESSON.number), "--small", "--mine", status=1)
    error = capsys.readouterr().err
    assert "ZeroDivisionError" in error and f"{LESSON.slug}.py, line" in error and "without --mine" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("file", ["none/x.svg", "."])
def test_a_picture_that_cannot_be_kept_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    said("run", str(LESSON.number), "--small", "--no-ask", "--svg", str(tmp_path / file), status=2)
    error = capsys.readouterr().err
    assert "--svg" in error and len(error.splitlines()) == 1


def test_predictions_that_are_none_or_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("nan", "1e400", "many"):
        with pytest.raises(SystemExit):
            said("run", str(LESSON.number), "--predict", text)
        assert f"'{text}' is no number" in capsys.readouterr().err
    said("run", str(LESSON.number), "--small", "--predict", *["1"] * 9)
    assert "Of your 9 predictions the last" in capsys.readouterr().out


def test_without_an_input_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    said("run", str(LESSON.number), "--small")


@pytest.mark.parametrize(
    ("number", "task", "owner", "name", "answer", "what", "got"),
    [
        (9, 1, "Scheduler", "share", lambda ours: lambda *a: float(ours(*a)), "(a whole number)", "61.0, a float"),
        (11, 2, "KVManager", "must_copy", lambda ours: lambda *a: None, "must_copy(table, 1)", "None"),
        (12, 2, "SwapManager", "victim", lambda ours: lambda *a: float(ours(*a)), "(a whole number)", "3.0, a float"),
    ],
)
def test_an_answer_of_the_wrong_kind_is_told_so(
    number: int, task: int, owner: str, name: str, answer: Any, what: str, got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = find(str(number))
    exercise = lesson.module("solution")
    of = getattr(exercise, owner)
    monkeypatch.setattr(exercise, owner, type(owner, (of,), {name: answer(getattr(of, name))}))
    found = grade(lesson, exercise, task)
    assert (found.standing, found.got) == ("wrong", got) and what in found.what


def test_a_folder_is_no_picture_and_that_is_said_before_the_play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(stage: stage.Stage) -> None:
        raise AssertionError("it was played")

    assert stage.run(LESSON, play, ["--no-ask", "--svg", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"lesson {LESSON.number}: --svg {tmp_path}: it is a folder; it must be a file\n"
