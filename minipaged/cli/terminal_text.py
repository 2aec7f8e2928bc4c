"""Text for a terminal: no control characters, and lines that break where a reader expects it, also in Chinese.

rich breaks at spaces and, where there are none, anywhere. Here a line may break between two Chinese characters, but not
before punctuation that closes, nor after punctuation that opens.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

_CLOSING = "，。、；：？！）》」』”’…—·"
_OPENING = "（《「『“‘"
# A run of spaces, a wide character with the punctuation that sticks to it, or a word of another script.
_WIDE = r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
_PIECES = re.compile(rf"[ \t]+|[{_OPENING}]*{_WIDE}[{_CLOSING}]*|(?:(?!{_WIDE})[^ \t])+[{_CLOSING}]*")


def wrap(text: str, cells: int) -> list[str]:
    """The text as lines of at most `cells` cells; its own line breaks stay.

    Args:
        text: any text; a Chinese character takes two cells.
        cells: at least 2.
    """
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _PIECES.findall(paragraph):
            if cell_len(line) + cell_len(piece.rstrip()) <= cells:
                line += piece
                continue
            lines += [line.rstrip()] if line.strip() else []
            # A word that is wider than a whole line is cut.
            *full, line = chop_cells(piece.lstrip(), cells) if cell_len(piece) > cells else [piece.lstrip()]
            lines += full
        lines.append(line.rstrip())
    return lines


def printable(text: str) -> str:
    """The text with its control characters as U+FFFD: an untrained model could send a terminal any escape sequence."""
    return "".join(c if c in "\n\t" or c.isprintable() or not c.isascii() else "\ufffd" for c in text)
