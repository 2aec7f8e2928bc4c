"""Keys: bytes become keys however they are cut, and a terminal is given back as it was found."""

from __future__ import annotations

import os
import pty
import termios
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.viz.keys import KeyDecoder, Keys

TYPED = b"n \x1b[C\x1b[D\x1bOA\x1b[1~\t\x1b[Z\r\x7f\xe4\xbd\xa0G\x1b[1;5Cq"
PRESSED = ["n", " ", "right", "left", "up", "home", "tab", "shift-tab", "enter", "backspace", "你", "G", "q"]


@given(st.sets(st.integers(1, len(TYPED) - 1)))
def test_bytes_become_the_same_keys_however_they_are_cut(cuts: set[int]) -> None:
    decoder = KeyDecoder()
    places = [0, *sorted(cuts), len(TYPED)]
    keys = [key for start, end in pairwise(places) for key in decoder.feed(TYPED[start:end])]
    assert keys == PRESSED  # Ctrl-right, which has no name, is no key
    assert not decoder.holds


@pytest.mark.parametrize(
    ("typed", "keys"), [(b"\x1b", ["escape"]), (b"\x1b[", ["escape", "["]), (b"\x1b\x1b", ["escape", "escape"])]
)
def test_an_escape_that_nothing_follows_is_a_key(typed: bytes, keys: list[str]) -> None:
    decoder = KeyDecoder()
    assert [*decoder.feed(typed), *decoder.flush()] == keys
    assert not decoder.holds


def test_an_escape_before_another_key_is_two_keys() -> None:
    assert KeyDecoder().feed(b"\x1bq") == ["escape", "q"]


def test_a_terminal_gives_keys_at_once_and_is_given_back_as_it_was() -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with os.fdopen(theirs, "r") as terminal:
        with pytest.raises(RuntimeError), Keys(terminal) as keys:
            assert keys.read(0.0) is None
            os.write(ours, b"n\x1b[C\x1b")
            assert [keys.read(5.0) for _ in range(3)] == ["n", "right", "escape"]
            assert not termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO)
            assert termios.tcgetattr(theirs)[3] & termios.ISIG, "Ctrl-C stays Ctrl-C"
            os.write(ours, b"typed ahead")
            raise RuntimeError
        assert termios.tcgetattr(theirs) == before
        os.close(ours)


def test_a_terminal_that_is_gone_says_so() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as terminal, Keys(terminal) as keys:
        os.close(ours)
        with pytest.raises(EOFError):
            keys.read(5.0)
