"""Relative links lead somewhere: in the README, on the pages, in the lessons, and in the other READMEs.

`mkdocs build --strict` checks the pages of the site; this holds without mkdocs, and for what is read in a clone or on
a code host.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.links import anchors, fault, links
from tests.docs.pages import ROOT, SHOWN, name_of

LINKED = [
    *SHOWN,
    *sorted((ROOT / "lessons").glob("*/README.md")),
    ROOT / "kernels" / "README.md",
    ROOT / "tests" / "README.md",
]


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    found = links(page.read_text(encoding="utf-8"))
    assert [f"{target}: {what}" for target in found if (what := fault(page, target))] == []


def test_the_lessons_and_the_readme_have_links() -> None:
    assert len(LINKED) > 18
    assert len(links((ROOT / "README.md").read_text(encoding="utf-8"))) > 20


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("b.py#Pool.take", None),
        ("b.py#LIMIT", None),
        ("b.py#Pool.give", "defines no Pool.give"),
        ("b.py#L3", "line's number"),
        ("c.md", "no such file"),
        ("/b.py", "slash"),
        ("#the-first-is-first", None),
        ("a.md#the-first-is-first-1", None),
        ("a.md#the-second", "no heading"),
        ("#here", None),
        ("#not-a-heading", "no heading"),
        ("d.txt#1", "neither"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(target: str, what: str | None, tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        '# The first *is* `first`!\n\n## The [first](b.py) is first\n\n<a id="here"></a>\n\n'
        f"[a link]({target}) and `[none](nowhere.md)`\n\n```text\n# Not a heading\n[none](nowhere.md)\n```\n",
        encoding="utf-8",
    )
    (tmp_path / "b.py").write_text("LIMIT: int = 3\nclass Pool:\n    def take(self): ...\n", encoding="utf-8")
    (tmp_path / "d.txt").write_text("", encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert links(text) == ["b.py", target]
    anchors.cache_clear()
    assert (fault(page, target) or "") == "" if what is None else what in str(fault(page, target))
