"""Runs what docs/benchmarks.md shows, and puts what was printed into the page, with the day.

    python docs/examples/benchmarks.py                                 all of it: an hour or so, on a machine left alone
    python docs/examples/benchmarks.py "bench scheduler" "bench single"     those whose command begins so
        --traces FOLDER           where the recorded traces lie (https://github.com/Azure/AzurePublicDataset,
                                  https://github.com/kvcache-ai/Mooncake)
        --vllm-python PATH        the interpreter of an environment that has vLLM's CPU build

In the page, `<!-- measured by: minipaged bench scheduler -->` stands over the block that it fills, and the line below
the block says when.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("MINIPAGED_SHARED", ROOT.parent / "shared"))  # as in the tests
PAGE = ROOT / "docs" / "benchmarks.md"
COLUMNS = 100
VLLM_PYTHON = "path/to/vllm/bin/python"  # as the page writes it
PACKAGES = ("torch", "numpy", "numba", "transformers")

_BLOCK = re.compile(r"<!-- measured by: minipaged (?P<command>[^\n]*?) -->\n\n```text\n.*?```\n\n\*[^\n]*\*\n", re.S)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beginnings", nargs="*", metavar="COMMAND")
    parser.add_argument("--traces", type=Path, default=SHARED / "traces")
    parser.add_argument("--vllm-python", default=sys.executable)
    options = parser.parse_args(argv)
    for command in [found["command"] for found in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]:
        if options.beginnings and not command.startswith(tuple(options.beginnings)):
            continue
        print(f"minipaged {command}", flush=True)
        words = shlex.split(command.replace(VLLM_PYTHON, options.vllm_python))
        write(command, *measure(words, options.traces))
    return 0


def measure(words: Iterable[str], traces: Path) -> tuple[str, float]:
    """What a command prints, and how many seconds it took. Files that are named are looked for in `traces`."""
    words = [str(traces / word) if (traces / word).is_file() else word for word in words]
    environment = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": os.pathsep.join([str(ROOT), f"{ROOT}/kernels"])}
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "minipaged", *words], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    seconds = time.perf_counter() - begin
    printed = done.stdout.replace(f"{traces}{os.sep}", "")
    return "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines()), seconds


def write(command: str, printed: str, seconds: float) -> None:
    """Puts it into the page. The page is read anew, so that what was written by hand meanwhile stays."""

    def replace(found: re.Match[str]) -> str:
        if found["command"] != command:
            return found[0]
        return f"<!-- measured by: minipaged {command} -->\n\n```text\n{printed}```\n\n*{stamp(seconds)}*\n"

    PAGE.write_text(_BLOCK.sub(replace, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def stamp(seconds: float) -> str:
    """The day and the machine, and how long it took: what a figure is worth nothing without."""
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES if _is_here(name))
    return (
        f"{day}; {os.cpu_count()} cores, {cpu_name()}; Python {platform.python_version()}, {packages}; "
        f"took {seconds:.0f} s."
    )


def cpu_name() -> str:
    """As the system calls it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = re.findall(r"^model name\s*: (.*)$", text, re.M)
    return names[0] if names else platform.machine()


def _is_here(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main())
