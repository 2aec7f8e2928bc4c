"""Links of a page that stay in the clone: each leads to a file, to a name in it, or to a heading.

Knows Markdown and Python's names; asks no server. An anchor on a heading is the one that a code host makes of it; the
site's own are checked by `mkdocs build --strict`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from tests.docs.hooks import site_map
from tests.docs.pages import DOCS, prose

MADE = {DOCS / "assets" / "run.html"}  # with the site
_LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"  # [text](target "title")
    r"|\b(?:href|src)=\"([^\"]+)\"|^\[[^\]]+\]:\s+(\S+)",
    re.M,
)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)


def links(text: str) -> list[str]:
    """Where a page's relative links, pictures and the like lead to, as they are written."""
    without_code = _CODE.sub("code", prose(text))
    targets = [next(filter(None, found)) for found in _LINK.findall(without_code)]
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|//", target)]


def fault(page: Path, target: str) -> str | None:
    """What is wrong with a link; None where it leads somewhere."""
    path, _, anchor = unquote(target).partition("#")
    file = page.parent / path if path else page
    if file.resolve() in MADE:
        return None
    if path.startswith("/"):
        return "it begins with a slash, which is another place on every machine"
    if not file.exists():
        return "there is no such file"
    if not anchor:
        return None
    if file.suffix == ".py":
        if re.fullmatch(r"L\d+(-L\d+)?", anchor):
            return "a line's number is another one tomorrow; name the function"
        defined = site_map.symbols(file.read_text(encoding="utf-8"))
        return None if anchor in defined else f"{file.name} defines no {anchor}"
    if file.suffix == ".md":
        return None if anchor in anchors(file) else f"{file.name} has no heading #{anchor}"
    return f"an anchor in {file.name}, which is neither Python nor Markdown"


@cache
def anchors(file: Path) -> frozenset[str]:
    """Of headings, and those that the page sets itself (`<a id="…">`)."""
    text = file.read_text(encoding="utf-8")
    found = set(re.findall(r"\bid=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", prose(text), re.M):
        name = anchor = _anchor_of(heading)
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{name}-{number}"
        found.add(anchor)
    return frozenset(found)


def _anchor_of(heading: str) -> str:
    """Small letters, a hyphen for each space, no punctuation; of a link its text."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"\s*\{[^}]*\}$", "", text)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
