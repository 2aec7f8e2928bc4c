"""What every lesson owes its reader: a stub that says what to write, a check that knows the usual mistakes by name, a
solution that passes, hints, a README that is true."""

from __future__ import annotations

import importlib
import json
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from lessons.runner import commands
from lessons.runner.grading import grades
from lessons.runner.lesson import LESSONS, Lesson, catalogue
from tests.docs.pages import UPDATE
from tests.lessons import printed

HEADINGS = [
    "The question", "The idea", "The code to read", "Predict", "Run it", "What it printed", "Why", "Misconceptions",
    "The exercise", "Further reading",
]  # fmt: skip
each_lesson = pytest.mark.parametrize("lesson", catalogue(), ids=lambda lesson: lesson.slug)
each_exercise = pytest.mark.parametrize(
    "lesson", [lesson for lesson in catalogue() if lesson.has_exercise], ids=lambda lesson: lesson.slug
)


def mistakes() -> list[tuple[Lesson, str]]:
    return [
        (lesson, path.stem)
        for lesson in catalogue()
        for path in sorted((lesson.folder / "mistakes").glob("*.py"))
        if path.stem != "__init__"
    ]


def section(lesson: Lesson, heading: str) -> str:
    text = (lesson.folder / "README.md").read_text(encoding="utf-8")
    return text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_the_folders_are_the_catalogue() -> None:
    folders = sorted(path.name for path in LESSONS.glob("lesson[0-9][0-9]_*") if path.is_dir())
    assert folders == [lesson.slug for lesson in catalogue()]
    assert [lesson.number for lesson in catalogue()] == list(range(len(catalogue())))


def test_the_projects_readme_lists_them() -> None:
    page = LESSONS.parent / "README.md"
    text, head = page.read_text(encoding="utf-8"), "<!-- lessons -->\n\n```text\n"
    start = text.index(head) + len(head)
    end = text.index("```", start)
    lines = "".join(f"{lesson.number:2}  {lesson.name:20} {lesson.question}\n" for lesson in catalogue())
    if UPDATE:
        page.write_text(text[:start] + lines + text[end:], encoding="utf-8")
    else:
        assert text[start:end] == lines


_IN_WORDS = {30: "half an hour", 45: "three quarters of an hour", 60: "an hour", 90: "an hour and a half"}


@each_lesson
def test_the_readme_begins_with_the_time_it_takes(lesson: Lesson) -> None:
    lead = " ".join((lesson.folder / "README.md").read_text(encoding="utf-8").split("\n\n")[1].split())
    assert lead.startswith(f"About {lesson.minutes} minutes of reading")
    if lesson.has_exercise:
        assert f"{_IN_WORDS[lesson.exercise_minutes]} for the exercise." in lead
    else:
        assert lesson.exercise_minutes == 0


# Exercises -----------------------------------------------------------------------------------------------------------


def test_a_lesson_without_an_exercise_has_nothing_of_one() -> None:
    for lesson in catalogue():
        for name in ("exercise.py", "solution.py", "check.py", "hints.md", "mistakes"):
            assert (lesson.folder / name).exists() == lesson.has_exercise, f"{lesson.slug}/{name}"


@each_exercise
def test_every_stub_fails_and_names_its_task(lesson: Lesson) -> None:
    for grade in grades(lesson, lesson.module("exercise")):
        assert grade.standing == "unwritten"
        assert grade.what.startswith(f"lesson {lesson.number}, task {grade.task}: "), grade.what


@each_exercise
@pytest.mark.parametrize("name", ["solution", "engine_part"])
def test_every_reference_passes(lesson: Lesson, name: str) -> None:
    if name == "engine_part" and find_spec(f"lessons.{lesson.slug}.engine_part") is None:
        pytest.skip("the engine has no such part of its own")
    assert [grade for grade in grades(lesson, lesson.module(name)) if not grade.passed] == []


@pytest.mark.parametrize(("lesson", "name"), mistakes(), ids=lambda value: getattr(value, "slug", value))
def test_every_mistake_is_rejected_by_its_name(lesson: Lesson, name: str) -> None:
    mistake: ModuleType = importlib.import_module(f"lessons.{lesson.slug}.mistakes.{name}")
    assert mistake.__doc__, "a mistake says what the person thinks"
    failed = [grade for grade in grades(lesson, mistake) if not grade.passed]
    assert failed, "the check lets it pass"
    assert failed[0].because == lesson.module("check").MISCONCEPTIONS[name], failed


@each_exercise
def test_there_are_five_mistakes_and_each_has_a_name(lesson: Lesson) -> None:
    files = {name for owner, name in mistakes() if owner is lesson}
    assert files == set(lesson.module("check").MISCONCEPTIONS)
    assert len(files) >= 5


@each_exercise
def test_hints_go_from_a_nudge_to_nearly_the_answer(lesson: Lesson) -> None:
    hints = commands.hints(lesson)
    assert list(hints) == list(range(1, len(lesson.tasks) + 1))
    for layers in hints.values():
        assert len(layers) == 3 and all(layers)


# READMEs -------------------------------------------------------------------------------------------------------------


@each_lesson
def test_the_readme_has_its_sections(lesson: Lesson) -> None:
    text = (lesson.folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# Lesson {lesson.number}: ")
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    assert re.findall(r"^## (.*)$", without_code, re.M) == HEADINGS


@each_lesson
def test_the_readme_links_to_what_is_there(lesson: Lesson) -> None:
    text = (lesson.folder / "README.md").read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    assert any(target.startswith(("../../minipaged", "../../kernels")) for target in targets)
    for target in targets:
        assert (lesson.folder / target).exists(), target


@each_exercise
def test_the_readme_names_every_misconception(lesson: Lesson) -> None:
    said = " ".join(section(lesson, "Misconceptions").split())
    for name, text in lesson.module("check").MISCONCEPTIONS.items():
        assert " ".join(text.split()) in said, f"{name}: {text}"


@each_lesson
def test_the_readme_prints_what_the_program_prints(lesson: Lesson) -> None:
    page = lesson.folder / "README.md"
    blocks = printed.printed_blocks(page)
    assert blocks, "there is no block behind `<!-- printed by: python -m lessons… -->`"
    for arguments, said in blocks:
        now = printed.what_it_prints(arguments)
        if UPDATE:
            printed.rewrite(page, arguments, now)
        else:
            assert printed.without_timings(now) == printed.without_timings(said)


# Runs ----------------------------------------------------------------------------------------------------------------


@each_lesson
def test_every_lesson_runs_headless(lesson: Lesson, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["run", str(lesson.number), "--small", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert isinstance(figures, dict) and figures


@each_lesson
def test_the_picture_can_be_kept(lesson: Lesson, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the one in the README exists."""
    assert "picture.svg" in (lesson.folder / "README.md").read_text(encoding="utf-8")
    kept = tmp_path / "picture.svg"
    assert commands.main(["run", str(lesson.number), "--small", "--no-ask", "--svg", str(kept)]) == 0
    assert kept.read_text(encoding="utf-8").startswith("<svg")
    assert re.search(r"^score ", capsys.readouterr().out, re.M), "it ends with a score line"
