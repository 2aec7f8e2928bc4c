"""What the built site is looked at for: links that lead nowhere, and requests to other servers. Each can be found."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.docs.hooks import load
from tests.docs.pages import DOCS

pytest.importorskip("mkdocs")


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="b/c.html#here">', None),
        ('<a href="b/c.html#there">', "no such place"),
        ('<meta name="there"><a href="#there">', "no such place"),
        ('<a href="b/d.html">', "leads nowhere"),
        ('<a href="https://arxiv.org/abs/2309.06180">', None),
        ('<img src="b/c.png">', "leads nowhere"),
        ('<img src="https://elsewhere/c.png">', "another server"),
        ('<script src="//elsewhere/c.js"></script>', "another server"),
        ('<link rel="stylesheet" href="https://elsewhere/c.css">', "another server"),
        ('<link rel="canonical" href="https://elsewhere/">', None),
        ('<link rel="stylesheet" href="plain.css">', None),
        ('<link rel="stylesheet" href="font.css">', "another server"),
    ],
)
def test_a_page_that_is_wrong_is_found(
    html: str, said: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.html").write_text('<a id="here" href="../a.html"></a>', encoding="utf-8")
    (tmp_path / "plain.css").write_text("p { background: url(b/c.html) }", encoding="utf-8")
    if "font.css" in html:
        (tmp_path / "font.css").write_text("@import 'https://elsewhere/font.css';", encoding="utf-8")
    (tmp_path / "a.html").write_text(html, encoding="utf-8")
    load(DOCS / "hooks" / "check_site.py").on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (said is not None)
    assert (said or "") in caplog.text
