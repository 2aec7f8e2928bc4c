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

from minipaged.serving.prefix_hits import PrefixHits, prefix_hits
from minipaged.traffic import TimedRequest, first_requests, read_mooncake

_MOST_BLOCKS = 10**7  # the books are kept block by block, and must fit into this machine's memory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--trace, --blocks, --requests, --json."""
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE", help="a Mooncake trace (JSON lines)")
    parser.add_argument(
        "--blocks", type=int, nargs="+", default=[0, 30_000, 10_000, 1_000], metavar="N",
        help="blocks of the cache; 0 for one without end (0 30000 10000 1000)",
    )  # fmt: skip
    parser.add_argument("--requests", type=int, metavar="N", help="the first N only")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Count and print."""
    if not 0 <= min(args.blocks) <= max(args.blocks) <= _MOST_BLOCKS:
        raise ValueError(f"bench hits: --blocks is {args.blocks}; each must be 0 to {_MOST_BLOCKS}")
    if args.requests is not None and args.requests < 1:
        raise ValueError(f"bench hits: --requests is {args.requests}; it must be at least 1")
    rows: list[tuple[int, PrefixHits]] = []
    for blocks in args.blocks:
        pool = blocks or sum(len(request.prompt_token_ids) for request in _traffic(args))
        rows.append((blocks, prefix_hits(_traffic(args), pool)))
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
