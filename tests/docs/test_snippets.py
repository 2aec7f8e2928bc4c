"""The Python on the pages that nobody types commands from runs, and prints what the page says that it prints.

The README and the how-tos are walked as a whole, Python and all, in `test_commands.py`. With `MINIPAGED_UPDATE_DOCS=1`
the blocks below `<!-- printed -->` are rewritten instead of compared, here and there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minipaged.model.loader import ASSETS
from tests.docs.clone import Clone
from tests.docs.pages import DOCS, PAGES, UPDATE, WALKED, blocks_of, name_of
from tests.docs.walk import Walk

READ = [page for page in PAGES if page not in WALKED and blocks_of(page, "python")]
SHIPPED = (ASSETS / "tiny-gpt" / "model.safetensors").is_file()


@pytest.mark.skipif(not SHIPPED, reason="the shipped model tiny-gpt is not here")
@pytest.mark.parametrize("page", READ, ids=name_of)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    text = Walk(page, Clone(tmp_path / "minipaged"), shell=False).go()
    if UPDATE:
        page.write_text(text, encoding="utf-8")
    else:
        assert text == page.read_text(encoding="utf-8")


def test_the_home_page_and_the_life_of_a_request_have_python() -> None:
    assert {DOCS / "index.md", DOCS / "life_of_a_request.md"} <= set(READ)
