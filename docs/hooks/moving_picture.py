"""An mkdocs hook: the home page's moving picture, a run of the real engine made when the site is built.

It is the page that `minipaged replay --html` writes of a recorded `minipaged watch`, so it can never be older than the
engine that it shows.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import clone  # noqa: F401
from mkdocs.structure.files import File, Files

from minipaged import cli


def on_files(files: Files, config: Any) -> Files:
    """Adds `assets/run.html`."""
    files.append(File.generated(config, "assets/run.html", content=_run()))
    return files


@cache  # `mkdocs serve` builds again and again
def _run() -> str:
    with tempfile.TemporaryDirectory() as folder:
        trace, page = Path(folder) / "run.trace", Path(folder) / "run.html"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            for arguments in (["watch", "--record", str(trace)], ["replay", str(trace), "--html", str(page)]):
                if cli.main(arguments) != 0:
                    raise RuntimeError(f"minipaged {' '.join(arguments)}: {said.getvalue()}")
        return page.read_text(encoding="utf-8")
