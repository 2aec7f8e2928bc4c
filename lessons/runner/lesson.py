"""Lesson and Task: what a lesson is called, what it asks, what there is to write. And the catalogue of all of them.

A lesson is a folder `lessons/lessonNN_name/` whose `__init__.py` has a `LESSON`. It is imported to list the lessons, so
it imports nothing heavy. What else lies in the folder is imported when it is needed, by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

LESSONS = Path(__file__).parents[1]
_FOLDER = re.compile(r"lesson(\d\d)_(\w+)")


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to write.

    Args:
        title: what it does, in a few words: "take a free block".
        names: what is to be written, as it is called in `exercise.py`: "BlockPool.allocate".
    """

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson's title page.

    Args:
        number: from 0; with `name` it makes the folder's name.
        name: the real part, such as "block_table".
        question: what it answers, one sentence.
        minutes: reading time.
        tasks: what the learner writes; task 1 is the first. None where nothing new is written.
        exercise_minutes: about how long the tasks take together, for one who has read the lesson.
    """

    number: int
    name: str
    question: str
    minutes: int
    tasks: tuple[Task, ...]
    exercise_minutes: int = 0

    @property
    def slug(self) -> str:
        """Its folder's name, and that of the learner's file."""
        return f"lesson{self.number:02d}_{self.name}"

    @property
    def has_exercise(self) -> bool:
        """Whether there is something to write. Without, it has no exercise, no check and no hints."""
        return bool(self.tasks)

    @property
    def folder(self) -> Path:
        return LESSONS / self.slug

    def module(self, name: str) -> ModuleType:
        """One of its files, imported: "exercise", "solution", "check" …"""
        return import_module(f"lessons.{self.slug}.{name}")


@cache
def catalogue() -> tuple[Lesson, ...]:
    """All lessons, in order."""
    folders = sorted(path for path in LESSONS.iterdir() if _FOLDER.fullmatch(path.name) and path.is_dir())
    modules = (import_module(f"lessons.{folder.name}") for folder in folders)
    return tuple(module.LESSON for module in modules if hasattr(module, "LESSON"))


def find(name: str) -> Lesson:
    """The lesson of a number ("5", "05"), a name ("block_table") or a folder ("lesson05_block_table").

    Raises:
        ValueError: there is none.
    """
    for lesson in catalogue():
        if name in (lesson.name, lesson.slug) or (name.isdecimal() and len(name) < 10 and int(name) == lesson.number):
            return lesson
    numbers = [lesson.number for lesson in catalogue()]
    raise ValueError(f"there is no lesson {name!r}; they are numbered {min(numbers)} to {max(numbers)}")
