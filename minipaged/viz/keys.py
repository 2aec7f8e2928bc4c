"""Keys: what is typed, one key at a time, from a terminal that is given back as it was found.

Knows terminals and their escape sequences; does not know what any key is for.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
import termios
import tty
from collections import deque
from contextlib import suppress
from typing import Any, TextIO

ESCAPE_SECONDS = 0.05  # what follows an escape within this time belongs to it

_NAMES = {
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace",
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end", "[Z": "shift-tab",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[5~": "page-up", "[6~": "page-down", "[7~": "home", "[8~": "end",
}  # fmt: skip
_SEQUENCE = re.compile(r"\[[0-?]*[ -/]*[@-~]|O[@-~]")  # what a terminal sends behind an escape
_BEGINNING = re.compile(r"(\[[0-?]*[ -/]*|O)?")


class KeyDecoder:
    """Bytes in, keys out: a character for itself, a name for the others. A sequence that has no name is no key."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""  # an escape, and what may become a sequence

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete with these bytes."""
        text = self._held + self._decoder.decode(data)
        self._held = ""
        keys = []
        while text:
            if text[0] != "\x1b":
                keys.append(_NAMES.get(text[0], text[0]))
                text = text[1:]
            elif sequence := _SEQUENCE.match(text, 1):
                if name := _NAMES.get(sequence[0]):
                    keys.append(name)
                text = text[sequence.end() :]
            elif _BEGINNING.fullmatch(text, 1):
                self._held = text
                break
            else:
                keys.append("escape")
                text = text[1:]
        return keys

    @property
    def holds(self) -> bool:
        """Whether an escape waits for what may follow it."""
        return bool(self._held)

    def flush(self) -> list[str]:
        """Nothing followed: the escape was the key, and what was held behind it are keys as well."""
        held, self._held = self._held, ""
        return ["escape", *held[1:]] if held else []


class Keys:
    """A `with` block within which a terminal's keys come at once and unseen.

    Ctrl-C and Ctrl-Z stay signals.

    Args:
        file: the terminal; standard input when None.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._fd = (file or sys.stdin).fileno()
        self._found: list[Any] | None = None
        self._decoder = KeyDecoder()
        self._ready: deque[str] = deque()

    def __enter__(self) -> Keys:
        self._found = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._found is not None:
            with suppress(termios.error):  # a terminal that is gone
                termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._found)  # what was typed ahead is not the shell's
            self._found = None

    def read(self, timeout_seconds: float) -> str | None:
        """The next key, or None when none comes in time.

        Raises:
            EOFError: the terminal is gone.
        """
        if not self._ready and self._wait(timeout_seconds):
            self._ready.extend(self._decoder.feed(self._bytes()))
            while self._decoder.holds and self._wait(ESCAPE_SECONDS):
                self._ready.extend(self._decoder.feed(self._bytes()))
            self._ready.extend(self._decoder.flush())
        return self._ready.popleft() if self._ready else None

    def _wait(self, seconds: float) -> bool:
        return bool(select.select([self._fd], [], [], max(0.0, seconds))[0])

    def _bytes(self) -> bytes:
        try:
            data = os.read(self._fd, 1024)
        except OSError:  # a terminal whose other end was closed
            data = b""
        if not data:
            raise EOFError("the terminal is gone")
        return data


if __name__ == "__main__":  # python -m minipaged.viz.keys
    print("Press keys; q ends.")
    with Keys() as keys:
        key = None
        while key != "q":
            if key := keys.read(1.0):
                print(repr(key))
