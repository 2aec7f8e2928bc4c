"""Mine: the learner's parts in the place of ours, as far as they have been written and pass their checks.

What the learner builds accumulates: a lesson's `plug.py` says where its exercise goes in the engine, with
`plug(parts, exercise) -> Parts`. A lesson whose exercise is no part of the engine (a loop, a table) has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from lessons.runner.grading import grades
from lessons.runner.lesson import Lesson, catalogue
from lessons.runner.workbook import Workbook

if TYPE_CHECKING:  # minipaged.parts imports torch
    from minipaged.parts import Parts


@dataclass(slots=True)
class Mine:
    """Whose parts are used.

    Args:
        answers: the learner's modules that are used, by lesson number; empty when all parts are ours.
        left_out: lessons that were begun and do not pass yet, with what is wrong.
    """

    answers: dict[int, ModuleType] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, workbook: Workbook, upto: int) -> Mine:
        """Grades what is in a workbook, lessons 0 to `upto`, and takes what passes whole."""
        mine = cls()
        for lesson in catalogue():
            if lesson.number > upto or not lesson.has_exercise:
                continue
            try:
                exercise = workbook.load(lesson)
            except ValueError as error:
                mine.left_out[lesson.number] = str(error)
                continue
            found = grades(lesson, exercise)
            if all(grade.passed for grade in found):
                mine.answers[lesson.number] = exercise
            elif any(grade.standing != "unwritten" for grade in found):
                failed = next(grade for grade in found if not grade.passed)
                mine.left_out[lesson.number] = f"task {failed.task} does not pass: {failed.what}"
        return mine

    def module(self, lesson: Lesson) -> ModuleType:
        """The learner's exercise, or our solution of it."""
        return self.answers.get(lesson.number) or lesson.module("solution")

    def parts(self) -> Parts:
        """The engine's parts, the learner's among them."""
        from minipaged.parts import Parts

        parts = Parts()
        for lesson in catalogue():
            if lesson.number in self.answers and find_spec(f"lessons.{lesson.slug}.plug"):
                parts = lesson.module("plug").plug(parts, self.answers[lesson.number])
        return parts

    def describe(self) -> list[str]:
        """Lines for the learner: what is theirs, and what was left out."""
        lines = []
        for lesson in catalogue():
            if lesson.number in self.answers:
                names = ", ".join(name for task in lesson.tasks for name in task.names)
                lines.append(f"lesson {lesson.number:2}: yours ({names})")
            elif lesson.number in self.left_out:
                lines.append(f"lesson {lesson.number:2}: ours, since yours: {self.left_out[lesson.number]}")
        return lines or ["nothing of yours yet: all parts are ours"]
