"""Each figure on the benchmarks' page has its command above it, and below it the day, the machine and its limit."""

from __future__ import annotations

import re
import shlex

import pytest

from minipaged.cli import _parser
from tests.docs.pages import DOCS

PAGE = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
#: A section of the page from its heading to the limit.
SECTIONS = re.findall(r"^### ([^\n]+)\n(.*?)(?=^###? |\Z)", PAGE, re.M | re.S)
_SHOWN = re.compile(r"^```sh\n\.venv/bin/minipaged ([^\n]*)\n```$", re.M)
_MEASURED = re.compile(r"^<!-- measured by: minipaged ([^\n]*) -->\n\n```text\n(.*?)```\n\n\*([^*\n]*)\*$", re.M | re.S)
_STAMP = re.compile(r"20\d\d-\d\d-\d\d; \d+ cores, .+; Python 3\.\d+\.\d+, torch \S+, .*; took \d+ s\.")


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_a_figure_has_its_command_its_day_and_its_limit(title: str, text: str) -> None:
    [shown] = _SHOWN.findall(text)
    [(command, printed, stamp)] = _MEASURED.findall(text)
    assert command == shown, "the reader would run another command than was measured"
    assert callable(_parser(shlex.split(command)).parse_args(shlex.split(command)).run)
    assert len(printed.splitlines()) >= 2 and re.search(r"\d", printed)
    assert _STAMP.fullmatch(stamp), stamp
    assert "**Held against:** " in text


def test_the_page_has_all_its_sections() -> None:
    assert len(SECTIONS) == len(_MEASURED.findall(PAGE)) >= 14
