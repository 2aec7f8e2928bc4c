"""Clone: a folder that looks to a reader like a clone with its `.venv`, and runs the lines that a page shows.

Nothing is installed: the programs of `.venv/bin` start this interpreter on this source. Where a line is one plain
command of ours it is called in this process, which spares the seconds that importing torch takes; anything with a
pipe, a redirection or a variable in it goes to bash.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.docs.pages import OPERATORS, ROOT, program, words_of
from tests.tiny_folder import make_tiny_folder

SECONDS = 120  # for a line that hangs
_PROGRAMS = {"minipaged": "-m minipaged", "python": "", "pytest": "-m pytest"}
_LEFT_OUT = {".git", ".venv", "lessons", "build", "dist", "site"}
_UNSET = (
    "MINIPAGED_WORKBOOK", "MINIPAGED_DEBUG", "MINIPAGED_UPDATE_DOCS", "NO_COLOR", "FORCE_COLOR", "COLUMNS",
    "PYTHONIOENCODING", "LC_ALL", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS",
)  # fmt: skip
# What takes long is done on less work, unless the page says how much.
LESS_WORK = {
    ("lessons", "run"): ("--small",),
    ("minipaged", "bench", "serving"): ("--requests", "40"),
    ("minipaged", "bench", "scheduler"): ("--running", "1", "16"),
}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a line."""

    status: int
    output: str
    errors: str


class Clone:
    """The folder. `path/to/gpt2` in it is a tiny random GPT-2: it stands for a reader's own.

    Args:
        folder: a new one is made of this name; what a page writes beside it (`../workbook`) is beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for entry in ROOT.iterdir():
            if entry.name not in _LEFT_OUT and not entry.name.endswith("_cache"):
                (folder / entry.name).symlink_to(entry)
        # A folder of its own, since the lessons remember in it where the workbook is.
        lessons = folder / "lessons"
        lessons.mkdir()
        for entry in (ROOT / "lessons").iterdir():
            if not entry.name.startswith((".", "__pycache__")):
                (lessons / entry.name).symlink_to(entry)
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name, how in _PROGRAMS.items():
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {how} "$@"\n', encoding="utf-8")
            path.chmod(0o755)
        make_tiny_folder(folder / "path" / "to" / "gpt2")

    def run(self, line: str) -> Done:
        """A shell line, as a reader without a terminal types it."""
        words = words_of(line)
        if OPERATORS.isdisjoint(words) and not set("$`*~") & set(line) and words[0].startswith(".venv/bin/"):
            name, arguments = program(words)
            if name in ("minipaged", "lessons"):
                return self._call(name, [*arguments, *_less(name, arguments)])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=self.folder,
            env=_environment() | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernels'}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def _call(self, name: str, arguments: list[str]) -> Done:
        from lessons.runner import commands as lessons
        from minipaged import cli

        output, errors = io.StringIO(), io.StringIO()
        with self.entered(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = cli.main(arguments) if name == "minipaged" else lessons.main(arguments)
            except SystemExit as exit_:  # argparse, of the lessons
                status = exit_.code if isinstance(exit_.code, int) else 1
        return Done(status, output.getvalue(), errors.getvalue())

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This process stands in the clone, imports what lies there, has no terminal, and its lessons write there."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            with (
                mock.patch.dict(os.environ, _environment(), clear=True),
                mock.patch("sys.path", [str(self.folder), *sys.path]),
                mock.patch("sys.stdin", io.StringIO()),
                mock.patch("lessons.runner.workbook.REMEMBERED", self.folder / "lessons" / ".workbook"),
            ):
                yield
        finally:
            os.chdir(before)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _UNSET} | {"PYTHONUTF8": "1"}


def _less(name: str, arguments: list[str]) -> tuple[str, ...]:
    words = (name, *arguments)
    for beginning, options in LESS_WORK.items():
        if words[: len(beginning)] == beginning and options[0] not in words:
            return options
    return ()
