"""The command line: finds the sub-command, runs it, and turns what it raises into one line and an exit status.

It does not know what any command does. Each lives in a module of its own with `add_arguments(parser)` and `run(args) ->
int`, imported only when it is asked for, so that `minipaged --help` does not wait for torch.

Exit status: 0 well, 1 something failed, 2 bad input, 130 interrupted, 141 nobody read on.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from minipaged import __version__

_COMMANDS = {  # name, which is also its module's -> one line of help
    "watch": "a workload on the real engine, step by step: who owns each block, who shares it, what moved and why",
    "replay": "a recorded run, forward and back; or as text, as a picture, as a page",
    "demo": "twenty prompts on a pool that is too small for them; then the same work done four ways",
    "generate": "answer prompts, streaming as tokens come",
    "bench": "measure the parts",
    "doctor": "what is installed, what runs here, and a self-test",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: the arguments; those of the process when None.

    Returns:
        The exit status.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character still gets the rest
            stream.reconfigure(errors="backslashreplace")
    try:
        parser = _parser(argv)
        if not argv:
            parser.print_help()
            return 2
        args = parser.parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()  # here, where a closed pipe is expected, and not while the interpreter shuts down
        return status
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):  # rich leaves in this way
            return 141
        # argparse: 0 after --help, 2 after a line that it refused
        return exit_.code if isinstance(exit_.code, int) else 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        return 141
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        if (error.name or "minipaged").split(".")[0].startswith("minipaged"):
            raise
        print(f"minipaged: {error.name} is not installed; `minipaged doctor` says how to get it", file=sys.stderr)
        return 1
    except ValueError as error:
        if os.environ.get("MINIPAGED_DEBUG") == "1":
            raise
        print(f"minipaged: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; arguments only for the one that `argv` names."""
    parser = argparse.ArgumentParser(
        prog="minipaged", description="A small GPT on a paged KV cache: run it, watch it, measure it."
    )
    parser.add_argument("--version", action="version", version=f"minipaged {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = next((argument for argument in argv if not argument.startswith("-")), None)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == chosen:
            module = import_module(f"minipaged.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
