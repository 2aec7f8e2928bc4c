"""Workbook: the folder in which a learner writes, outside the clone, so that a pull never meets their answers.

    ../workbook/
        lesson05_block_table.py      the exercise, to be written in; one file per lesson
        progress.json                which tasks have passed, of which state of the file; which hints were read

It knows files, and neither lessons' contents nor grades.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from lessons.runner.guard import guard, text_of
from lessons.runner.lesson import LESSONS, Lesson, catalogue

CLONE = LESSONS.parent
#: Remembers which workbook was started last from this clone; git ignores it.
REMEMBERED = LESSONS / ".workbook"
_PROGRESS = "progress.json"


class Workbook:
    """An existing workbook.

    Args:
        folder: made by `start`.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._progress = self._read()

    @classmethod
    def start(cls, folder: Path) -> tuple[Workbook, list[Path]]:
        """Make a workbook, or bring one up to date with lessons that have come since. Never touches an answer.

        Returns:
            The workbook, and the files that are new in it.

        Raises:
            ValueError: the folder lies in the clone, or cannot be written.
        """
        folder = Path(os.path.abspath(folder.expanduser()))  # without the ".." of "../workbook"
        if folder.resolve().is_relative_to(CLONE.resolve()):
            raise ValueError(f"{folder} is inside the clone, where a pull would meet your answers; try ../workbook")
        made = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for lesson in filter(lambda lesson: lesson.has_exercise, catalogue()):
                path = folder / f"{lesson.slug}.py"
                if not path.exists():
                    path.write_text((lesson.folder / "exercise.py").read_text(encoding="utf-8"), encoding="utf-8")
                    made.append(path)
            if not (folder / _PROGRESS).exists():
                (folder / _PROGRESS).write_text("{}\n", encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{folder} cannot be a workbook: {error.strerror or error}") from None
        REMEMBERED.write_text(f"{folder}\n", encoding="utf-8")
        return cls(folder), made

    @classmethod
    def current(cls, folder: str | None = None) -> Workbook | None:
        """The one that is named, else that of `MINIPAGED_WORKBOOK`, else the one started last; None if there is none.

        Raises:
            ValueError: it is named, and is none.
        """
        named = folder or os.environ.get("MINIPAGED_WORKBOOK")
        if named:
            return cls(Path(named).expanduser().absolute())
        if REMEMBERED.exists():
            remembered = Path(REMEMBERED.read_text(encoding="utf-8").strip())
            return cls(remembered) if (remembered / _PROGRESS).exists() else None
        return None

    # Answers ---------------------------------------------------------------------------------------------------------

    def path(self, lesson: Lesson) -> Path:
        """The learner's file for a lesson."""
        return self.folder / f"{lesson.slug}.py"

    def load(self, lesson: Lesson) -> ModuleType:
        """The learner's file, imported anew.

        Raises:
            ValueError: it is not there, or Python cannot import it; one line that says where.
        """
        path = self.path(lesson)
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is no file; `python -m lessons reset {lesson.number}` makes it one")
        if not path.exists():
            raise ValueError(f"{path} is not there; `python -m lessons start {self.folder}` brings it")
        return load_answer(path, lesson)

    def reset(self, lesson: Lesson) -> Path | None:
        """The stub again. What was written is kept beside it; returns where, None when there was nothing."""
        path, kept = self.path(lesson), None
        if path.exists():
            numbers = (i for i in range(1, 1_000_000) if not path.with_suffix(f".old{i}").exists())
            kept = path.rename(path.with_suffix(f".old{next(numbers)}"))
        path.write_text((lesson.folder / "exercise.py").read_text(encoding="utf-8"), encoding="utf-8")
        self._of(lesson).clear()
        self._save(lesson)
        return kept

    # Progress --------------------------------------------------------------------------------------------------------

    def record(self, lesson: Lesson, passed: dict[int, bool]) -> None:
        """Keep how tasks were graded, with the state of the file in which they were."""
        tasks = self._of(lesson).setdefault("passed", {})
        for task, good in passed.items():
            if good:
                tasks[str(task)] = self._state(lesson)
            else:
                tasks.pop(str(task), None)
        self._save(lesson)

    def passed(self, lesson: Lesson) -> set[int]:
        """Tasks that have passed, whatever became of the file since."""
        passed = {int(task) for task in self._of(lesson).get("passed", {})}
        return passed & set(range(1, len(lesson.tasks) + 1))  # a later version of the lesson may have had more

    def is_changed(self, lesson: Lesson) -> bool:
        """Whether the file is no longer what was graded."""
        return any(state != self._state(lesson) for state in self._of(lesson).get("passed", {}).values())

    def next_hint(self, lesson: Lesson, task: int, num_layers: int) -> int:
        """Which layer of a task's hints comes now, from 1; the last one stays."""
        hints = self._of(lesson).setdefault("hints", {})
        hints[str(task)] = max(1, min(hints.get(str(task), 0) + 1, num_layers))
        self._save(lesson)
        return int(hints[str(task)])

    def _of(self, lesson: Lesson) -> dict[str, Any]:
        return self._progress.setdefault(lesson.slug, {})

    def _state(self, lesson: Lesson) -> str:
        path = self.path(lesson)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""

    def _read(self) -> dict[str, dict[str, Any]]:
        path = self.folder / _PROGRESS
        try:
            progress = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise ValueError(
                f"{self.folder} is no workbook; `python -m lessons start {self.folder}` makes it one"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} cannot be read: {error}; delete it and `start` again") from None
        if not isinstance(progress, dict) or not all(_is_sound(progress.get(one.slug, {})) for one in catalogue()):
            raise ValueError(f"{path} holds no progress; delete it and `start` again")
        return progress

    def _save(self, lesson: Lesson) -> None:
        """Keep what is known of a lesson; of the others another process may know more by now."""
        path = self.folder / _PROGRESS
        beside = path.with_suffix(f".new{os.getpid()}")
        progress = self._read() if path.exists() else self._progress
        progress[lesson.slug] = self._of(lesson)
        beside.write_text(json.dumps(progress, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)


def load_answer(path: Path, lesson: Lesson) -> ModuleType:
    """A learner's file for a lesson, imported anew.

    Raises:
        ValueError: Python cannot import it; one line that says where.
    """
    spec = spec_from_file_location(f"workbook_{lesson.slug}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    try:
        with guard():
            spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise ValueError(f"{path}{where}: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a file may raise anything, and call sys.exit
        raise ValueError(f"{path} cannot be imported: {' '.join(text_of(error).split())}") from None
    return module


def _is_sound(kept: Any) -> bool:
    """Whether this is what a workbook keeps of a lesson; there may be more of it, from a later version."""
    if not isinstance(kept, dict):
        return False
    for part, kind in (("passed", str), ("hints", int)):
        tasks = kept.get(part, {})
        if not isinstance(tasks, dict):
            return False
        if not all(task.isdecimal() and isinstance(value, kind) for task, value in tasks.items()):
            return False
    return True
