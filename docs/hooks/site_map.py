"""Which page of the site shows which file of the clone.

A page of the site is either a page in docs/, a README that stands beside what it describes (a lesson's, the kernels'),
or a source file. Links are written as they work in a clone, from file to file; this module knows where each leads here.
"""

from __future__ import annotations

import ast
import posixpath
from pathlib import Path

ROOT = Path(__file__).parents[2]

# The folders whose files have pages, apart from docs/ itself. What is long and not written to be read has none.
SHOWN = ("minipaged", "kernels", "lessons", "tests", "docs/examples", "docs/hooks")
AT_THE_ROOT = ("LICENSE", "constraints.txt", "pyproject.toml", "mkdocs.yml")
TEXT = (".py", ".txt", ".json", ".jsonl", ".html", ".toml", ".yml", ".css")
LONGEST = 64_000  # bytes
_PASSED_OVER = ("__pycache__", "egg-info", "snapshots")

# READMEs that are pages of their own: by their place in the clone, their place on the site.
READMES = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh-CN.md",
    "kernels/README.md": "kernels.md",
    "tests/README.md": "tests.md",
    **{
        path.relative_to(ROOT).as_posix(): f"lessons/{path.parent.name}.md"
        for path in sorted((ROOT / "lessons").glob("lesson*/README.md"))
    },
}
_ORIGINS = {page: readme for readme, page in READMES.items() if page != "index.md"}


def origin_of(page: str) -> str:
    """The file of the clone in which a page of the site was written: `lessons/lesson05_x.md` -> its README."""
    return _ORIGINS.get(page, f"docs/{page}")


def place_of(path: str) -> str | None:
    """Where the site has a file or folder of the clone, as a path below docs/; None where it has not."""
    if path in READMES:
        return READMES[path]
    file = ROOT / path
    if path.startswith("docs/") and not path.startswith(SHOWN):
        return path.removeprefix("docs/") if file.is_file() else None
    if file.is_dir():
        folder_has_page = any(path == top or path.startswith(f"{top}/") for top in SHOWN)
        return f"source/{path}/index.md" if folder_has_page else None
    if file.suffix == ".svg" and file.is_file():
        return path
    return f"source/{path}.md" if is_shown(file) else None


def is_shown(file: Path) -> bool:
    """Whether a source file has a page of its own."""
    path = file.relative_to(ROOT).as_posix()
    if path in AT_THE_ROOT:
        return file.is_file()
    return (
        any(path.startswith(f"{top}/") for top in SHOWN)
        and file.is_file()
        and (file.suffix in TEXT)
        and not any(part.endswith(_PASSED_OVER) for part in file.parts)
        and file.stat().st_size <= LONGEST
    )


def target(page: str, link: str) -> str | None:
    """A link of a page's text, such as `../minipaged/engine.py#Engine.step`, as it must be on the site.

    Returns:
        The link from `page`, or None where the site has nothing at that place.
    """
    path, mark, anchor = link.partition("#")
    if not path:
        return link
    place = place_of(posixpath.normpath(posixpath.join(posixpath.dirname(origin_of(page)), path)))
    if place is None:
        return None
    return posixpath.relpath(place, posixpath.dirname(page) or ".") + mark + anchor


def symbols(text: str) -> dict[str, int]:
    """Line of each class, function and method, and of each name that a module assigns to: `Engine.step` -> 100."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(prefix + node.name, node.lineno)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for name in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(name, ast.Name):
                        found.setdefault(prefix + name.id, node.lineno)

    visit(ast.parse(text).body, "")
    return found
