"""Memory: how many blocks a second the books allocate, share and evict, at pools of a thousand to a million blocks.

The bookkeeping alone: no model, no tensor. Each sequence has a prompt of its own below a common beginning, so every
admission walks the tree, shares, allocates, inserts, and, once the pool is full, evicts as many blocks as it takes.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.plan import Sampling
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams

BLOCK_SIZE = 16
SHARED_BLOCKS = 2  # of every prompt
OWN_BLOCKS = 14
ROUNDS = 5  # the median of which counts
_SAMPLING = Sampling(1.0, None, 1.0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BooksResult:
    """Blocks per second at one pool size: while there are free blocks, and when each one must be evicted first."""

    num_blocks: int
    allocated_per_second: float
    evicted_per_second: float
    swapped_per_second: float  # evicted to a host pool of the same size, which drops one for each


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--books, --sizes, --json."""
    parser.add_argument("--books", action="store_true", help="the bookkeeping alone (the only part there is)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6], metavar="N",
        help="pools, in blocks (default 1000 10000 100000 1000000)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and say how flat it is."""
    if min(args.sizes) < 200:
        raise ValueError(f"bench memory: --sizes has {min(args.sizes)}; a pool must have at least 200 blocks")
    results = [measure(size) for size in args.sizes]
    if args.json:
        print(json.dumps([asdict(result) for result in results]))
        return 0
    table = Table(
        title=f"The books, {BLOCK_SIZE} tokens a block, {SHARED_BLOCKS} of {SHARED_BLOCKS + OWN_BLOCKS} shared"
    )
    for heading in ("blocks in the pool", "allocated /s", "evicted /s", "swapped out /s"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            f"{result.num_blocks:,}",
            f"{result.allocated_per_second:,.0f}",
            f"{result.evicted_per_second:,.0f}",
            f"{result.swapped_per_second:,.0f}",
        )
    console = Console()
    console.print(table)
    for name in ("allocated", "evicted", "swapped"):
        rates = [getattr(result, f"{name}_per_second") for result in results]
        console.print(f"{name}: fastest is {max(rates) / min(rates):.2f} times the slowest")
    return 0


def measure(num_blocks: int) -> BooksResult:
    """Fill a pool, then go on; and once more with a host pool of the same size behind it."""
    allocated, evicted = _rates(num_blocks, host_blocks=0)
    _, swapped = _rates(num_blocks, host_blocks=num_blocks)
    return BooksResult(num_blocks, allocated, evicted, swapped)


def _rates(num_blocks: int, host_blocks: int) -> tuple[float, float]:
    pool, tree = BlockPool(num_blocks), PrefixTree(BLOCK_SIZE)
    memory = KVManager(pool, tree, SwapManager(host_blocks) if host_blocks else None)
    noise = random.Random(0)
    first = [noise.randrange(256) for _ in range(SHARED_BLOCKS * BLOCK_SIZE)]
    made = 0

    def sequences(count: int) -> list[Sequence]:
        nonlocal made
        fresh = []
        for _ in range(count):
            tokens = first + list(noise.randbytes(OWN_BLOCKS * BLOCK_SIZE - 1)) + [0]
            fresh.append(Sequence(made, Request(made, (0,), SamplingParams(), 0), 0, tokens, _SAMPLING))
            made += 1
        return fresh

    def serve(batch: list[Sequence]) -> float:
        """Admit, commit and release each; returns seconds."""
        gc.collect()
        gc.disable()  # a collection walks the whole pool's nodes, which is the collector's cost and not the books'
        began = time.perf_counter()
        for sequence in batch:
            memory.admit(sequence, len(sequence.tokens))
            memory.end_step()
            memory.release(sequence)
            memory.take_operations()
        seconds = time.perf_counter() - began
        gc.enable()
        return seconds

    per_round = max(10, min(400, num_blocks // OWN_BLOCKS // ROUNDS // 2))
    allocated = [per_round * OWN_BLOCKS / serve(sequences(per_round)) for _ in range(ROUNDS)]
    while pool.num_free + (memory.swap.num_free if memory.swap else 0) > OWN_BLOCKS:
        serve(sequences(min(2000, max(10, num_blocks // OWN_BLOCKS // 10))))
    evicted = [per_round * OWN_BLOCKS / serve(sequences(per_round)) for _ in range(ROUNDS)]
    return statistics.median(allocated), statistics.median(evicted)
