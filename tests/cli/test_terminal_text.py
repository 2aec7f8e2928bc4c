"""Wrapped lines fit, lose nothing, and break where a reader expects it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from minipaged.cli.terminal_text import printable, wrap


@pytest.mark.parametrize(
    ("text", "cells", "lines"),
    [
        ("black holes are dark", 11, ["black holes", "are dark"]),
        ("黑洞是天体", 6, ["黑洞是", "天体"]),
        ("黑洞是天体", 7, ["黑洞是", "天体"]),  # a character is never halved
        ("黑洞，是天体。", 4, ["黑", "洞，", "是天", "体。"]),  # no line begins with a comma
        ("他说：“好”吧", 8, ["他说：", "“好”吧"]),  # nor ends with an opening quotation mark
        ("用 GPU 计算黑洞", 8, ["用 GPU", "计算黑洞"]),
        ("GPU计算", 5, ["GPU计", "算"]),
        ("line\n\nnext", 9, ["line", "", "next"]),
        ("unbreakable", 4, ["unbr", "eaka", "ble"]),
        ("", 4, [""]),
    ],
)
def test_breaks(text: str, cells: int, lines: list[str]) -> None:
    assert wrap(text, cells) == lines


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab  黑洞，。“”（）—…é\n", max_size=60), st.integers(2, 12))
def test_every_line_fits_and_no_character_is_lost(text: str, cells: int) -> None:
    lines = wrap(text, cells)
    assert all(cell_len(line) <= cells for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_terminal_is_sent_no_escape_sequences() -> None:
    assert printable("\x1b[2Jred\r\n\t黑") == "\ufffd[2Jred\ufffd\n\t黑"
