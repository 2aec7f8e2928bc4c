"""An mkdocs hook: the house's source files as pages of the site, so that a page can link to the line it speaks of.

The anchors of a source page are the classes, functions and methods of the file, and its lines (`#L12`). A folder's page
says what is in it. None of them is in the navigation or in the search.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from site_map import AT_THE_ROOT, ROOT, SHOWN, is_shown, place_of, symbols

_HEAD = "---\ntitle: {title}\nsearch:\n  exclude: true\nhide:\n  - navigation\n  - toc\n---\n\n{trail}\n\n"


def on_files(files: Files, config: Any) -> Files:
    """Adds one page for each source file, and one for each folder."""
    for name in AT_THE_ROOT:
        files.append(_generated(config, ROOT / name, _source_page(ROOT / name)))
    for top in SHOWN:
        for path in sorted((ROOT / top).rglob("*")):
            if is_shown(path):
                files.append(_generated(config, path, _source_page(path)))
        shown = {parent for path in (ROOT / top).rglob("*") if is_shown(path) for parent in path.parents}
        for folder in sorted(folder for folder in shown if folder.is_relative_to(ROOT / top)):
            files.append(_generated(config, folder, _folder_page(folder)))
    return files


def _generated(config: Any, path: Path, content: str) -> File:
    place = place_of(_name(path))
    assert place is not None
    return File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _trail(path: Path) -> str:
    """The way to a file or folder, each folder on it a link: minipaged / memory / tiers.py."""
    parts = _name(path).split("/")
    ups = len(parts) - (1 if path.is_file() else 0)
    steps = []
    for depth, part in enumerate(parts[:-1], start=1):
        has_page = place_of("/".join(parts[:depth])) is not None
        steps.append(f"[{part}]({'../' * (ups - depth)}index.md)" if has_page else part)
    return "# " + " / ".join([*steps, f"`{parts[-1]}`"])


def _source_page(path: Path) -> str:
    """The file, highlighted, one element for each line; where a name is defined, its line bears the name."""
    text = path.read_text(encoding="utf-8")
    names = {line: name for name, line in symbols(text).items()} if path.suffix == ".py" else {}
    try:
        lexer = get_lexer_for_filename(path.name, stripnl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False)
    html = highlight(text, lexer, HtmlFormatter(nowrap=True))
    lines = []
    for number, line in enumerate(html.rstrip("\n").split("\n"), start=1):
        anchor = f'<a id="{names[number]}"></a>' if number in names else ""
        lines.append(f'<span class="source-line" id="L{number}">{anchor}{line}</span>')
    code = "\n".join(lines)
    return (
        _HEAD.format(title=_name(path), trail=_trail(path))
        + f'<div class="highlight source"><pre><code>{code}\n</code></pre></div>\n'
    )


def _folder_page(folder: Path) -> str:
    """What lies in a folder: its folders, then its files; of Python files the first sentence that they say."""
    rows = []
    entries = sorted(folder.iterdir(), key=lambda entry: (entry.is_file(), entry.name))
    for entry in entries:
        if place_of(_name(entry)) is None or entry.suffix == ".svg":
            continue
        if entry.is_dir():
            if any(is_shown(path) for path in entry.rglob("*")):
                rows.append(f"| [`{entry.name}/`]({entry.name}/index.md) | {_sentence(entry / '__init__.py')} |")
        elif is_shown(entry):
            rows.append(f"| [`{entry.name}`]({entry.name}.md) | {_sentence(entry)} |")
    return (
        _HEAD.format(title=f"{_name(folder)}/", trail=_trail(folder))
        + "| | what it says of itself |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _sentence(path: Path) -> str:
    """The first line of a module's docstring, up to its first full stop."""
    if path.suffix != ".py" or not path.is_file():
        return ""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = " ".join(said.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
    return sentence.replace("|", "\\|").replace("<", "&lt;") + ("." if sentence else "")
