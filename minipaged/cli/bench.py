"""`minipaged bench NAME`: every module `bench_NAME.py` beside this one is a benchmark, with `add_arguments` and `run`.

Knows only how to find them.
"""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from pathlib import Path

_PREFIX = "bench_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one sub-command for each benchmark that is there."""
    names = sorted(
        module.name.removeprefix(_PREFIX)
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if module.name.startswith(_PREFIX)
    )
    parser.set_defaults(benchmark=None, benchmarks={})
    if not names:
        return
    benchmarks = parser.add_subparsers(metavar="BENCHMARK")
    summaries: dict[str, str] = {}
    for name in names:
        module = import_module(f"minipaged.cli.{_PREFIX}{name}")
        summary = (module.__doc__ or "").strip().partition("\n")[0]
        benchmark = benchmarks.add_parser(name.replace("_", "-"), help=summary, description=summary)
        module.add_arguments(benchmark)
        benchmark.set_defaults(benchmark=module.run)
        summaries[name.replace("_", "-")] = summary
    parser.set_defaults(benchmarks=summaries)


def run(args: argparse.Namespace) -> int:
    """Runs the chosen benchmark; where none was chosen, says which there are, and returns 2."""
    if args.benchmark is None:
        if not args.benchmarks:
            raise ValueError("bench: this version has no benchmarks")
        width = max(map(len, args.benchmarks))
        print("Which benchmark? minipaged bench NAME, and NAME is one of\n")
        print("\n".join(f"  {name:{width}}  {summary}" for name, summary in args.benchmarks.items()))
        print("\nminipaged bench NAME --help lists its options.")
        return 2
    status: int = args.benchmark(args)
    return status
