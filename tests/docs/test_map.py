"""The map of the house, docs/architecture.md, has a sentence for every file, and names no file that is gone."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT

MAP = DOCS / "architecture.md"


@pytest.mark.parametrize(
    "path",
    sorted(
        path.relative_to(ROOT).as_posix()
        for top in ("minipaged", "kernels/minipaged_kernels")
        for path in (ROOT / top).rglob("*.py")
    ),
)
def test_every_file_has_its_sentence_in_the_map(path: str) -> None:
    rows = [
        line for line in MAP.read_text(encoding="utf-8").splitlines() if line.startswith(f"| [`{path}`](../{path})")
    ]
    assert len(rows) == 1, f"docs/architecture.md, 'Every file in a sentence': one row for {path}"
    assert rows[0].split("|")[2].strip().endswith((".", ".)")), "a sentence"


def test_the_map_names_no_file_that_is_gone() -> None:
    for name in re.findall(r"^\| \[`([^`]+)`\]", MAP.read_text(encoding="utf-8"), re.M):
        assert (ROOT / name).is_file(), name
