"""An mkdocs hook: on the page of the Python interface, below each name, how to import it and the way to its source.

Knows only what the page's headings are called; mkdocstrings has made them.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from clone import ROOT, minipaged
from site_map import place_of

_HEADING = re.compile(r'<h3 id="(?P<module>minipaged[\w.]*)\.(?P<name>\w+)" class="doc doc-heading">.*?</h3>', re.S)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Adds the line."""
    if page.file.src_uri != "reference/api.md":
        return html
    here = posixpath.dirname(page.file.src_uri)

    def add(heading: re.Match[str]) -> str:
        module, name = heading["module"], heading["name"]
        file = module.replace(".", "/") + ".py"
        file = file if (ROOT / file).is_file() else f"kernels/{file}"
        place = place_of(file)
        assert place is not None, file
        source = posixpath.relpath(place, here).removesuffix(".md") + ".html"
        front = "minipaged" if minipaged._HOME.get(name) == module else module
        line = f'<code>from {front} import {name}</code> · <a href="{source}#{name}">source</a>'
        return f'{heading[0]}\n<p class="import">{line}</p>'

    return _HEADING.sub(add, html)
