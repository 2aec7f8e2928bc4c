"""Hits: how many blocks of a recorded trace's prompts a prefix cache finds, for caches of several sizes.

The prompts go through the real scheduler and the real prefix tree, one after the other, in the order of the file. Each
piece of 512 tokens that the trace names by a hash is one block.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from minipaged.cli.options import MOST_BLOCKS, MOST_REQUESTS, check_range
from minipaged.serving.prefix_hits import prefix_hits
from minipaged.traffic import TimedRequest, first_requests, read_mooncake

_COMMAND = "bench hits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--trace, --blocks, --requests, --json."""
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE", help="a Mooncake trace (JSON lines)")
    parser.add_argument(
        "--blocks", type=int, nargs="+", default=[0, 30_000, 10_000, 1_000], metavar="N",
        help="blocks of the cache; 0 for one without end (default 0 30000 10000 1000)",
    )  # fmt: skip
    parser.add_argument("--requests", type=int, metavar="N", help="the first N only (default: all)")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Count and print."""
    check_range(_COMMAND, "--requests", args.requests, 1, MOST_REQUESTS)
    for blocks in args.blocks:
        check_range(_COMMAND, "--blocks", blocks, 0, MOST_BLOCKS)
    lengths = [len(request.prompt_token_ids) for request in _traffic(args)]
    for blocks in args.blocks:
        if 0 < blocks < max(lengths):
            raise ValueError(
                f"{_COMMAND}: --blocks is {blocks}; it must be at least {max(lengths)}, the blocks of the longest "
                "prompt, or 0 for a cache without end"
            )
    # As many blocks as all prompts have never run out.
    rows = [(blocks, prefix_hits(_traffic(args), blocks or sum(lengths))) for blocks in args.blocks]
    if args.json:
        print(json.dumps([{"blocks": blocks, **asdict(hits), "rate": hits.rate} for blocks, hits in rows]))
        return 0
    first = rows[0][1]
    table = Table(title=f"{first.num_requests:,} prompts of {first.num_blocks:,} blocks, one after the other")
    for heading in ("blocks of the cache", "found", "there to the end", "hit rate", "by the engine"):
        table.add_column(heading, justify="right")
    for blocks, hits in rows:
        table.add_row(
            f"{blocks:,}" if blocks else "no end", f"{hits.num_found:,}", f"{hits.num_last:,}",
            f"{hits.rate:.4f}", f"{hits.engine_rate:.4f}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        "A prompt that is there to its end still has its last block computed, for the logits of its last token: the "
        "engine's rate is lower by these."
    )
    return 0


def _traffic(args: argparse.Namespace) -> Iterator[TimedRequest]:
    return first_requests(read_mooncake(args.trace, tokens_per_hash=1), args.requests)
