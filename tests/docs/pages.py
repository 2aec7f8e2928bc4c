"""The pages, and what is shown on them: fenced blocks with their marks, shell lines, `minipaged` commands.

Knows how a page is written, and runs nothing. A mark is a comment on a line of its own before a block:

    <!-- printed -->         a `text` block: what the Python blocks before it print
    <!-- file: NAME -->      a file that the reader is to save under that name
    <!-- needs: gpu -->      cannot be run on an ordinary machine; or `network`
    <!-- command: demo -->   one of the two commands that `.ci/run` takes from the README
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
TRANSLATIONS = sorted(ROOT.glob("README.*.md"))
HOWTOS = sorted((DOCS / "howto").glob("*.md"))
PAGES = sorted(DOCS.rglob("*.md"))
SHOWN = [README, *TRANSLATIONS, *PAGES]  # whose commands must exist
WALKED = [README, *TRANSLATIONS, *HOWTOS]  # whose commands run
#: Rewrite what the pages print instead of comparing it.
UPDATE = os.environ.get("MINIPAGED_UPDATE_DOCS") == "1"

NEEDS = ("gpu", "network")
OPERATORS = frozenset(("&&", "||", "|", ";", "&", ">", ">>", "<", "(", ")"))
_ENDS_A_COMMAND = OPERATORS - {">", ">>", "<"}
_BLOCK = re.compile(
    r"(?P<marks>(?:^ *<!-- [^\n]*? -->\n\n?)*)^(?P<indent> *)```(?P<kind>\w*)[^\n`]*\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
_MARK = re.compile(r"<!-- (.*?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Args:
        kind: the word behind the fence, such as `sh`.
        text: what stands in it, from the fence's column on.
        marks: the comments directly before it.
        span: where its text stands in the page, as (start, end).
    """

    kind: str
    text: str
    marks: tuple[str, ...]
    span: tuple[int, int]

    def mark(self, name: str) -> str | None:
        """What a mark `name: value` says; None where there is none."""
        return next((mark.partition(": ")[2] for mark in self.marks if mark.startswith(f"{name}: ")), None)


def name_of(page: Path) -> str:
    """As it is called in messages: relative to the clone."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page's text, in order."""
    found = []
    for part in _BLOCK.finditer(text):
        moved = "".join(line.removeprefix(part["indent"]) for line in part["text"].splitlines(keepends=True))
        found.append(Block(part["kind"], moved, tuple(_MARK.findall(part["marks"])), part.span("text")))
    return found


def blocks_of(page: Path, kind: str | None = None) -> list[Block]:
    """The blocks of a page, of one kind or of all."""
    found = blocks(page.read_text(encoding="utf-8"))
    return [block for block in found if kind is None or block.kind == kind]


def prose(text: str) -> str:
    """A page's text without its blocks."""
    return _BLOCK.sub("", text)


def shell_lines(text: str) -> list[str]:
    """What a shell would take as one line each: comments gone, lines that end in a backslash or in a quote joined."""
    found, line = [], ""
    for part in text.splitlines():
        line += part.lstrip() if line.endswith(" ") else part
        if line.endswith("\\"):
            line = line[:-1].rstrip() + " "
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a quotation that is still open
            line += "\n"
            continue
        if words:
            found.append(_without_comment(line, words).strip())
        line = ""
    if line.strip():
        raise ValueError(f"this line does not end: {line!r}")
    return found


def _without_comment(line: str, words: list[str]) -> str:
    """Cuts where a comment begins: the first # behind which nothing counts."""
    for place in (found.start() for found in re.finditer(r"(?:^|(?<=\s))#", line)):
        try:
            if shlex.split(line[:place]) == words:
                return line[:place]
        except ValueError:  # that one is inside a quotation
            continue
    return line


def words_of(line: str) -> list[str]:
    """A shell line's words, operators such as | and > being words of their own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def commands(line: str) -> Iterator[list[str]]:
    """The single commands of a shell line, without what is set before them and what is redirected behind them."""
    command: list[str] = []
    redirected = False
    for word in [*words_of(line), ";"]:
        if word in _ENDS_A_COMMAND:
            if command:
                yield command
            command, redirected = [], False
        elif word in OPERATORS:
            redirected = True
        elif not redirected and (command or not re.match(r"[A-Za-z_]\w*=", word)):
            command.append(word)


def program(command: list[str]) -> tuple[str, list[str]]:
    """What a command starts, and its arguments: ("minipaged", …), ("lessons", …), ("pytest", …), ("echo", …)."""
    name, arguments = Path(command[0]).name, command[1:]
    if name.startswith("python") and arguments[:1] == ["-m"] and len(arguments) > 1:
        return arguments[1], arguments[2:]
    return name, arguments


def shown_commands(name: str, pages: list[Path] | None = None) -> list[tuple[str, list[str]]]:
    """Every command of one program in the shell blocks of pages: (page, its arguments)."""
    return [
        (name_of(page), program(command)[1])
        for page in (SHOWN if pages is None else pages)
        for block in blocks_of(page, "sh")
        for line in shell_lines(block.text)
        for command in commands(line)
        if program(command)[0] == name
    ]
