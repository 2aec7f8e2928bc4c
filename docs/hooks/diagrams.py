"""An mkdocs hook: a diagram is part of its page, so that what it names can be followed, and its colours are the page's.

In the text a diagram is an image like any other, `![what is seen](assets/life_of_a_block.svg)`, and that is what a
clone and a code host show. Here the file itself is put in the image's place. Its links, written from file to file, are
pointed to the site's pages; one that leads to no file, or to a name that the file has not, is a warning, which
`mkdocs build --strict` does not forgive.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from typing import Any

from mkdocs.structure.files import Files
from site_map import ROOT, place_of, symbols

logger = logging.getLogger("mkdocs.hooks.diagrams")
_IMAGE = re.compile(r'(?:<p>)?<img [^>]*?src="(?P<source>[^"]+\.svg)"[^>]*>(?:</p>)?')
_LINK = re.compile(r'(?<=<a href=")[^"]+(?=")')


def on_page_content(content: str, page: Any, files: Files, **_: Any) -> str:
    """Puts each diagram of a page into it; other pictures stay images."""

    def replace(image: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), image["source"]))
        file = ROOT / path
        if not file.is_file():
            return image[0]  # mkdocs has complained
        svg = file.read_text(encoding="utf-8")
        return inlined(svg, path, page, files) if svg.startswith("<svg") and 'class="diagram"' in svg else image[0]

    return _IMAGE.sub(replace, content)


def inlined(svg: str, path: str, page: Any, files: Files) -> str:
    """A diagram as a part of a page. What is within it can be reached by keyboard, so it is no longer one image."""

    def replace(link: re.Match[str]) -> str:
        href = html.unescape(link[0])
        name, mark, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        wrong = what_is_wrong(target, anchor)
        file = None if wrong else files.get_file_from_path(place_of(target) or "")
        if file is None:
            logger.warning(
                "%s: the link %s leads nowhere: %s", path, href, wrong or "the site has no page of that file"
            )
            return link[0]
        return html.escape(file.url_relative_to(page.file) + mark + anchor)

    svg = svg.replace('class="diagram"', 'class="diagram in-page"', 1).replace('role="img"', 'role="group"', 1)
    return f"<div>{_LINK.sub(replace, svg)}</div>"


def what_is_wrong(target: str, anchor: str) -> str | None:
    """Why nothing is there: in one line, or None when all is well."""
    file = ROOT / target
    if not file.is_file():
        return f"there is no file {target}"
    if anchor and file.suffix == ".py" and anchor not in symbols(file.read_text(encoding="utf-8")):
        return f"{target} has no {anchor}"
    return None
