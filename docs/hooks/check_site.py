"""An mkdocs hook: when the site is built, each link and each picture of it leads somewhere, and nothing leads outside
unasked.

mkdocs checks the links of the text before it is made into pages. This looks at the pages themselves, so also at what
was written as HTML, at anchors in source pages, and at what the theme brings along.
"""

from __future__ import annotations

import logging
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

log = logging.getLogger("mkdocs.hooks.check_site")

# What a browser fetches without being asked: by element, the attribute that names it.
_FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "image": "href", "use": "href"}
_OUTSIDE = re.compile(r"^(?:https?:)?//")
_IN_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*")


class _Page(HTMLParser):
    """What a page can be entered by, where it leads, and what it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found and (tag == "a" or name == "id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if _FETCHED.get(tag) in found:
            self.fetched.append(found[_FETCHED[tag]])
        if tag == "link" and found.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.fetched.append(found.get("href", ""))


def on_post_build(config: Any) -> None:
    """Says of each link that leads nowhere, and of each request to another server, a warning: `--strict` fails."""
    site = Path(config.site_dir)
    pages = {path.relative_to(site).as_posix(): _read(path) for path in sorted(site.rglob("*.html"))}
    for name, page in pages.items():
        for fetched in page.fetched:
            if _OUTSIDE.match(fetched):
                log.warning("%s: fetches %s from another server", name, fetched)
        if name == "404.html":  # its links are from the root of a server
            continue
        for link in {*page.links, *page.fetched}:
            if not re.match(r"^(?:[a-z]+:|//)", link):
                _follow(site, pages, name, link)
    for sheet in sorted(site.rglob("*.css")):
        for found in _IN_CSS.findall(sheet.read_text(encoding="utf-8")):
            log.warning("%s: fetches %s from another server", sheet.relative_to(site), found)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _follow(site: Path, pages: dict[str, _Page], name: str, link: str) -> None:
    path, _, anchor = unquote(link).partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path.split("?")[0])) if path else name
    if not (site / place).is_file():
        log.warning("%s: %s leads nowhere", name, link)
    elif anchor and place in pages and anchor not in pages[place].anchors and not place.startswith("assets/"):
        log.warning("%s: %s: that page has no such place", name, link)
