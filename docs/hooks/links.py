"""An mkdocs hook: READMEs as pages of the site, and every link as it must be there.

In a page one writes the link that works in a clone and on a code host: `../minipaged/engine.py#Engine.step`, or
`../lessons/lesson05_block_table/README.md`. Here it is pointed to the page that shows that file. What is not there is
left as it stands, and `mkdocs build --strict` complains.
"""

from __future__ import annotations

import re
from typing import Any

from mkdocs.structure.files import File, Files
from site_map import READMES, ROOT, origin_of, target

_LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<link>[^()\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)


def on_files(files: Files, config: Any) -> Files:
    """Adds the READMEs that are pages of their own, and the pictures beside them."""
    for readme, page in READMES.items():
        path = ROOT / readme
        if page != "index.md" and path.is_file():
            files.append(File.generated(config, page, abs_src_path=str(path)))
            for picture in sorted(path.parent.glob("*.svg")):
                files.append(File.generated(config, picture.relative_to(ROOT).as_posix(), abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points the links of a page's text to pages of the site; code between fences is left alone."""
    here = page.file.src_uri
    if here.startswith("source/"):
        return markdown

    def replace(found: re.Match[str]) -> str:
        return f"]({target(here, found['link']) or found['link']})"

    parts = _FENCE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(replace, part) for number, part in enumerate(parts))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Says in which language a translated README is: what it is read aloud in, and by which fonts it is drawn."""
    found = re.fullmatch(r"README\.([\w-]+)\.md", origin_of(page.file.src_uri))
    return f'<div lang="{found[1]}">\n{html}\n</div>' if found else html
