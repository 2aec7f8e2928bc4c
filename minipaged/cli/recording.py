"""`--record FILE`: a run of an `LLM` that is written down while it is used, with titles from its prompts."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minipaged.llm import LLM
    from minipaged.recorder import Recorder
    from minipaged.request import Request

TITLE_TOKENS = 24
TITLE_CHARACTERS = 40


def add_record_option(parser: argparse.ArgumentParser, what: str = "every step") -> None:
    """--record."""
    parser.add_argument("--record", metavar="FILE", help=f"write {what} to a trace, for `minipaged replay`")


def require_writable(path: str | None) -> None:
    """For a command that begins to record late: refuse at once what `recording` would refuse then.

    Raises:
        ValueError: the file cannot be written.
    """
    if path is not None:
        from minipaged.trace_file import TraceWriter

        TraceWriter(path).close()


def replay_hint(path: str) -> str:
    """How to see a recorded run again, by the program that is running."""
    return f"See it again: {_how_started()} replay {shlex.quote(path)}"


def say_why_no_picture(why: str) -> None:
    """One line on standard error, so that nobody waits for a picture."""
    print(f"minipaged: no picture, since {why}; the run is summed up instead", file=sys.stderr)


def _how_started() -> str:
    """What to type to start this program again; plain `minipaged` where the shell would find it, or nobody knows."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py" and program.parent.name == "minipaged":
        return f"{shlex.quote(sys.orig_argv[0])} -m minipaged"
    if program.name != "minipaged":
        return "minipaged"
    found = shutil.which("minipaged")
    return "minipaged" if found and Path(found).samefile(program) else shlex.quote(str(program))


@contextmanager
def recording(llm: LLM, path: str | None) -> Iterator[Recorder | None]:
    """Records what the engine does meanwhile; without a path, nothing.

    Raises:
        ValueError: the file cannot be written.
    """
    if path is None:
        yield None
        return
    from minipaged.recorder import Recorder
    from minipaged.trace_file import TraceWriter

    def title(request: Request) -> str:
        if llm.tokenizer is None:
            return ""
        beginning = llm.tokenizer.decode(list(request.prompt_token_ids[:TITLE_TOKENS])).rstrip("\ufffd")
        return " ".join(beginning.split())[:TITLE_CHARACTERS]

    with TraceWriter(path) as writer, Recorder(llm.engine, writer, description=llm.description, title=title) as found:
        yield found
        if found.is_behind and not llm.engine.has_work:
            llm.engine.step()  # computes nothing; its record says who was ended after the last step
