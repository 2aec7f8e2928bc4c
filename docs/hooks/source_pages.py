"""An mkdocs hook: the house's source files as pages of the site, so that a page can link to the line it speaks of.

In a page one writes the link that works in a clone and on a code host, `../minipaged/engine.py#Engine.step`. Here it
becomes a link to a generated page, whose anchors are the classes, functions and methods of the file. A file or a name
that is not there makes `mkdocs build --strict` fail.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

ROOT = Path(__file__).parents[2]
SHOWN = ("minipaged", "kernels", "lessons", "tests", "docs/examples")
_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[\w./-]+\.py)(?P<anchor>#[\w.]+)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds one page for each source file; they are not in the navigation, nor in the search."""
    for top in SHOWN:
        for path in sorted((ROOT / top).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            page = File.generated(
                config, _page_of(name), content=_page(name, path), inclusion=InclusionLevel.NOT_IN_NAV
            )
            files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to source files to their pages; others are left alone."""
    here = posixpath.dirname(page.file.src_uri)

    def replace(link: re.Match[str]) -> str:
        name = posixpath.normpath(posixpath.join("docs", here, link["up"] + link["path"]))
        if not (ROOT / name).is_file() or name.split("/")[0] == "..":
            return link[0]  # mkdocs will complain
        return f"]({posixpath.relpath(_page_of(name), here or '.')}{link['anchor'] or ''})"

    return _LINK.sub(replace, markdown)


def _page_of(name: str) -> str:
    return f"source/{name}.md"


def _page(name: str, path: Path) -> str:
    """The file, highlighted, one element for each line; where a name is defined, its line bears the name."""
    text = path.read_text(encoding="utf-8")
    names = {line: symbol for symbol, line in symbols(text).items()}
    html = highlight(text, get_lexer_for_filename(path.name, stripnl=False), HtmlFormatter(nowrap=True))
    lines = []
    for number, line in enumerate(html.rstrip("\n").split("\n"), start=1):
        anchor = f'<a id="{names[number]}"></a>' if number in names else ""
        lines.append(f'<span class="source-line" id="L{number}">{anchor}{line}</span>')
    code = "\n".join(lines)
    return (
        f"---\ntitle: {name}\nsearch:\n  exclude: true\nhide:\n  - navigation\n  - toc\n---\n\n# `{name}`\n\n"
        f'<div class="highlight source"><pre><code>{code}\n</code></pre></div>\n'
    )


def symbols(text: str) -> dict[str, int]:
    """Line of each class, function and method, and of each name that a module assigns to: `Engine.step` -> 100."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(prefix + node.name, node.lineno)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign) and not prefix:
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, node.lineno)

    visit(ast.parse(text).body, "")
    return found
