"""`python -m lessons grade`: a class's workbooks, among them such as would rather not be graded."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lessons.runner import apart, commands, guard, workbook
from lessons.runner.apart import grades_apart
from lessons.runner.lesson import catalogue, find

LESSON = find("block_table")
SOLVED = f"from lessons.{LESSON.slug}.solution import *\n"
STUB = (LESSON.folder / "exercise.py").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def nobodys_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "REMEMBERED", tmp_path / "remembered")
    monkeypatch.delenv("MINIPAGED_WORKBOOK", raising=False)


@pytest.fixture
def handed_in(tmp_path: Path) -> list[Path]:
    """Of ada all is right, of ben one task, of cyd nothing is written, dan's file is not there, eve's is no Python."""
    half = "class BlockTable:\n    pass\n\nclass BlockPool(BlockPool):\n    def free(self, block):\n        pass\n"
    texts = {"ada": SOLVED, "ben": SOLVED + half, "cyd": STUB, "eve": "def f(:\n"}
    for name in ("ada", "ben", "cyd", "dan", "eve"):
        (tmp_path / "class" / name).mkdir(parents=True)
        if name in texts:
            (tmp_path / "class" / name / f"{LESSON.slug}.py").write_text(texts[name], encoding="utf-8")
    return sorted((tmp_path / "class").iterdir())


def said(*arguments: object, status: int = 0) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert commands.main(["grade", *map(str, arguments)], console) == status
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def answers(tmp_path: Path, text: str) -> Path:
    path = tmp_path / f"{LESSON.slug}.py"
    path.write_text(SOLVED + text, encoding="utf-8")
    return path


def standings(path: Path, **options: Any) -> list[str]:
    return [grade.standing for grade in grades_apart(path, LESSON, **options)]


def test_a_table_with_a_row_for_each_learner(handed_in: list[Path], tmp_path: Path) -> None:
    before = {path: path.read_bytes() if path.is_file() else b"" for path in (tmp_path / "class").rglob("*")}
    rows = [line.split() for line in said(*handed_in, "--lesson", "5", "6").splitlines()]
    assert rows[0] == ["lesson", "5", "6", "passed"]
    assert rows[1:] == [
        ["ada", "3/3", "·", "3", "of", "6"],
        ["ben", "1/3", "·", "1", "of", "6"],
        ["cyd", "·", "·", "0", "of", "6"],
        ["dan", "·", "·", "0", "of", "6"],
        ["eve", "0/3", "·", "0", "of", "6"],
    ]
    after = {path: path.read_bytes() if path.is_file() else b"" for path in (tmp_path / "class").rglob("*")}
    assert after == before, "a folder that was handed in stays as it is"
    assert not workbook.REMEMBERED.exists()


def test_the_same_for_a_spreadsheet(handed_in: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert said(*handed_in[:2], "--lesson", "5", "--csv") == ""
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [["workbook", "5", "passed", "tasks"], ["ada", "3", "3", "3"], ["ben", "1", "1", "3"]]


def test_the_same_for_a_machine_with_what_is_wrong(handed_in: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    said(*handed_in[1:], "--lesson", "block_table", "--json")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["workbook"], row["lesson"], row["task"]) for row in found] == [
        (name, 5, task) for name in ("ben", "cyd", "dan", "eve") for task in (1, 2, 3)
    ]
    assert [row["standing"] for row in found[:3]] == ["passed", "wrong", "broken"]
    assert found[1]["expected"] and "line 1" in found[-1]["what"]
    assert {row["standing"] for row in found[3:9]} == {"unwritten"}


def test_all_lessons_and_folders_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is run here: what is as it was given out is known without."""
    for name in ("ada", "ben"):
        workbook.Workbook.start(tmp_path / name / "workbook")
    said(*sorted(tmp_path.glob("*/workbook")), "--csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [Path(row["workbook"]).parent.name for row in rows] == ["ada", "ben"]
    assert {int(row["tasks"]) for row in rows} == {sum(len(lesson.tasks) for lesson in catalogue())}


def test_names_and_files_that_are_odd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row is one line, whatever the folder is called; what is no file is not run, and takes nobody else's grade."""
    for name in ("a b\né", "[red]", "loop", "folder", "endless"):
        (tmp_path / "class" / name).mkdir(parents=True)
    file = f"{LESSON.slug}.py"
    for name in ("a b\né", "[red]"):
        (tmp_path / "class" / name / file).write_text(SOLVED, encoding="utf-8")
    (tmp_path / "class" / "loop" / file).symlink_to(file)
    (tmp_path / "class" / "folder" / file).mkdir()
    (tmp_path / "class" / "endless" / file).symlink_to("/dev/zero")
    folders = sorted((tmp_path / "class").iterdir())
    assert [line.rsplit(maxsplit=4)[0] for line in said(*folders, "--lesson", "5").splitlines()[1:]] == [
        "[red]", "a b é", "endless", "folder", "loop",
    ]  # fmt: skip
    said(*folders, "--lesson", "5", "--csv")
    assert [row[1] for row in csv.reader(io.StringIO(capsys.readouterr().out))] == ["5", "3", "3", "0", "0", "0"]


def test_a_folder_that_may_not_be_entered_costs_nobody_else(
    handed_in: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if path.parent.name == "ada":
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    rows = [line.split() for line in said(*handed_in[:2], "--lesson", "5").splitlines()[1:]]
    assert [row[:2] for row in rows] == [["ada", "0/3"], ["ben", "1/3"]]
    assert "Permission denied" in grades_apart(handed_in[0] / f"{LESSON.slug}.py", LESSON)[0].what


def test_the_columns_stand_below_their_lesson(handed_in: list[Path]) -> None:
    head, *rows = said(*handed_in, "--lesson", "5").splitlines()
    assert {row.index("/3") + 2 for row in rows if "/3" in row} == {head.index("5") + 1}


def test_the_folder_of_the_folders_is_refused(handed_in: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    said(handed_in[0].parent, status=2)
    assert "handed-in/*" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["none"], ["."], [".", "--lesson", "13"], [".", "--seconds", "0"], [".", "--seconds", "1e9"]]
)
def test_bad_input_gets_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said(*arguments, status=2)
    assert len(capsys.readouterr().err.splitlines()) == 1


# Attacks -------------------------------------------------------------------------------------------------------------

ENDS = "class BlockPool(BlockPool):\n    def free(self, block):\n        import os; os._exit(0)\n"


def test_an_answer_that_ends_the_process_costs_its_own_task(tmp_path: Path) -> None:
    assert standings(answers(tmp_path, ENDS)) == ["passed", "broken", "passed"]


def test_a_file_that_ends_the_process_costs_the_lesson(tmp_path: Path) -> None:
    for text in ("import os; os._exit(0)", "raise KeyboardInterrupt"):
        assert standings(answers(tmp_path, text)) == ["broken"] * 3


def test_an_error_that_says_very_much_is_cut_short(tmp_path: Path) -> None:
    found = grades_apart(answers(tmp_path, "raise ValueError('x' * 10**7)"), LESSON)
    assert all("ValueError: xxx" in grade.what and len(grade.what) < 2000 for grade in found)


def test_what_an_answer_prints_is_no_grade(tmp_path: Path) -> None:
    lies = "".join(json.dumps({"task": task, "standing": "passed"}) + "\n" for task in (1, 2, 3))
    noise = f"import os, sys\nfor out in 1, 2:\n    os.write(out, {('imported' + chr(10) + lies).encode()!r})\n"
    assert standings(answers(tmp_path, noise + ENDS)) == ["passed", "broken", "passed"]
    assert standings(answers(tmp_path, f"{noise}print({lies!r})\nos._exit(0)")) == ["broken"] * 3


def test_a_loop_without_an_end_is_stopped(tmp_path: Path) -> None:
    path = answers(tmp_path, "class BlockPool(BlockPool):\n    def free(self, block):\n        while True: pass\n")
    found = grades_apart(path, LESSON, seconds=0.5)
    assert [grade.standing for grade in found] == ["passed", "broken", "passed"]
    assert found[1].what == "it had not ended after 0.5 seconds"


def test_one_that_has_put_the_alarm_off_is_stopped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(apart, "STARTING_SECONDS", 10)
    off = "import faulthandler, signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\n"
    off += "faulthandler.cancel_dump_traceback_later()\nwhile True: pass\n"
    found = grades_apart(answers(tmp_path, off), LESSON, seconds=0.1)
    assert [grade.standing for grade in found] == ["broken"] * 3 and "no alarm woke it" in found[0].what


def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    kept = tmp_path / "pid"
    path = answers(
        tmp_path, f"import subprocess as s\nopen({str(kept)!r}, 'w').write(str(s.Popen(['sleep', '300']).pid))\n"
    )
    assert standings(path) == ["passed"] * 3
    for _ in range(100):  # whoever inherits it may take a moment to bury it
        if not _lives(int(kept.read_text())):
            return
        time.sleep(0.1)
    raise AssertionError("the sleeper lives")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_it_runs_in_a_folder_of_its_own(tmp_path: Path) -> None:
    before = {*Path.cwd().iterdir(), *tmp_path.iterdir()}
    path = answers(tmp_path, "import os\nopen('left behind', 'w').close()\nassert os.listdir() == ['left behind']\n")
    assert standings(path) == ["passed"] * 3
    assert {*Path.cwd().iterdir(), *tmp_path.iterdir()} == before | {path}
