"""What a lesson's README says that the program prints, compared with what it prints now, but for timings."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS = 100
_BLOCK = re.compile(r"<!-- printed by: python (-m lessons\.[^\n]*?) -->\n\n```text\n(.*?)```\n", re.S)
_TIMING = re.compile(
    r"\d[\d,.]*(?:e[+-]?\d+)? ?(?:s|ms|µs|ns|min|minutes|seconds|tokens/s|GB/s|GFLOP/s|TFLOP/s|steps/s|×)(?![\w/])"
)


def printed_blocks(page: Path) -> list[tuple[str, str]]:
    """(arguments of python, what it is said to print), in order."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def what_it_prints(arguments: str) -> str:
    """Runs a lesson as a person without a terminal would; a failure shows all that it said."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": os.pathsep.join([str(ROOT), f"{ROOT}/kernels"])}
    for name in ("MINIPAGED_WORKBOOK", "MINIPAGED_DEBUG", "NO_COLOR", "TERM", "PYTHONIOENCODING", "LC_ALL"):
        environment.pop(name, None)
    environment["PYTHONUTF8"] = "1"
    done = subprocess.run(
        [sys.executable, *shlex.split(arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").splitlines())


def without_timings(text: str) -> str:
    """Timings and the spacing that depends on their width are taken out."""
    return " ".join(re.sub(r"[─━╸╺]+", "─", _TIMING.sub("#", text)).split())


def rewrite(page: Path, arguments: str, printed: str) -> None:
    """Puts what is printed now into the page."""
    text = page.read_text(encoding="utf-8")
    head = f"<!-- printed by: python {arguments} -->\n\n```text\n"
    start = text.index(head) + len(head)
    page.write_text(text[:start] + printed + text[text.index("```\n", start) :], encoding="utf-8")
