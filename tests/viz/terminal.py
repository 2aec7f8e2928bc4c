"""A real pseudo-terminal with a program in it: keys go in, the screen can be read, and the terminal's settings."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

PATIENCE_SECONDS = 60.0
_HOME = "\x1b[H"  # begins each picture
SETTINGS = ("NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE")  # of whoever runs the tests
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """Runs a command in a terminal of its own. A context manager, which kills what is left.

    Args:
        arguments: of Python: what the program is to be.
        width, height: in cells.
        environment: set beside the one that is there.
    """

    def __init__(self, *arguments: str, width: int = 100, height: int = 30, **environment: str) -> None:
        self._ours, self._theirs = pty.openpty()
        self.height = height
        self.resize(width, height)
        self.before: list[Any] = termios.tcgetattr(self._theirs)
        self.output = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

        def settle() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C becomes a signal
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a test runner in the background ignores it

        inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=settle,
            env=inherited | {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | environment,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def resize(self, width: int, height: int) -> None:
        self.height = height
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._ours, key.encode())

    def read(self, seconds: float = 0.05) -> None:
        """Takes what the program writes within this time."""
        end = time.monotonic() + seconds
        while select.select([self._ours], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                self.output += self._decoder.decode(os.read(self._ours, 65536))
            except OSError:  # the program has closed its end
                return

    @property
    def screen(self) -> list[str]:
        """The lines of the last whole picture; before there is one, all that was written."""
        for picture in reversed(self.output.split(_HOME)):
            lines = _CONTROL.sub("", picture).split("\r\n")
            if len(lines) >= self.height:
                return lines
        return _CONTROL.sub("", self.output).split("\r\n")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Reads until something holds."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < end, f"still not {what}:\n" + "\n".join(self.screen)
            assert self.process.poll() is None, f"it ended, and never was {what}:\n{self.output[-3000:]}"
            self.read()

    def wait_for(self, *words: str) -> list[str]:
        """Reads until a picture has all of these; returns its lines."""
        self.wait_until(lambda: all(any(word in line for line in self.screen) for word in words), f"showing {words}")
        return self.screen

    def wait(self) -> int:
        """Reads until the program ends; returns its status."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.process.wait(timeout=1)

    @property
    def after_the_show(self) -> str:
        """What was written when the alternate screen was left."""
        return self.output.rpartition("\x1b[?1049l")[2]

    def assert_restored(self) -> None:
        """The settings are those of before, the cursor is shown, the alternate screen is left."""
        assert termios.tcgetattr(self._theirs) == self.before
        assert "\x1b[?1049h" in self.output and "\x1b[?25l" in self.output, "there was a show"
        assert self.output.rfind("\x1b[?25h") > self.output.rfind("\x1b[?25l")
        assert self.output.rfind("\x1b[?1049l") > self.output.rfind("\x1b[?1049h")
        assert _HOME not in self.after_the_show
