"""Kernels: bytes moved per second by each attention backend, as a share of what this machine can copy.

A decode reads K and V of its whole context once, so its bytes are `2 * context * num_kv_heads * head_dim * itemsize`
for each sequence and layer, and the machine's copy bandwidth (bytes read and bytes written, measured in the same
run) is what it can hope for. Beside it: the same answer by gathering the blocks and calling torch's SDPA. `--full`
measures nothing, and compares each backend with the oracle on the full product of conformance 34 and 35.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from minipaged_kernels import backends, reference
from rich.console import Console
from rich.table import Table
from torch.nn.functional import scaled_dot_product_attention

from minipaged.cli import kernel_problems as problems

BLOCK_SIZE = 16
COPY_BYTES = 256 * 2**20  # far beyond any cache
POOL_BYTES = 256 * 2**20  # layers that fill this, up to twelve, are visited in turn, so that none stays in a cache
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class KernelResult:
    """One backend on one shape. `share` is of the copy bandwidth; `sdpa_milliseconds` is the gather included."""

    backend: str
    dtype: str
    kind: str  # decode or prefill
    sequences: int
    context: int
    milliseconds: float
    gigabytes_per_second: float
    share: float
    gigaflops: float
    sdpa_milliseconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--heads, --kv-heads, --head-dim, --dtype, --contexts, --sequences, --backend, --one-thread, --full, --json."""
    parser.add_argument(
        "--heads", type=int, default=12, metavar="N", help="query heads (default 12, as in a GPT-2 of 124 M)"
    )
    parser.add_argument("--kv-heads", type=int, metavar="N", help="KV heads (default: as many as query heads)")
    parser.add_argument("--head-dim", type=int, default=64, metavar="N", help="numbers in a head (default 64)")
    parser.add_argument(
        "--dtype", choices=_DTYPES, nargs="+", default=["float32", "bfloat16"],
        help="of K and V (default float32 bfloat16)",
    )  # fmt: skip
    parser.add_argument(
        "--contexts", type=int, nargs="+", default=[64, 256, 1024, 4096], metavar="N",
        help="tokens of each sequence (default 64 256 1024 4096)",
    )  # fmt: skip
    parser.add_argument(
        "--sequences", type=int, nargs="+", default=[1, 8, 64], metavar="N", help="in a batch (default 1 8 64)"
    )
    parser.add_argument(
        "--backend", nargs="+", metavar="NAME",
        help=f"{', '.join(backends.NAMES)}, or FILE.py with one of your own (default: all that run here)",
    )  # fmt: skip
    parser.add_argument(
        "--one-thread", action="store_true", help="one thread and its own CPU time: for a machine that others use too"
    )
    parser.add_argument("--full", action="store_true", help="compare with the oracle instead, on every shape")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure and print; with --full, 1 if any answer is wrong."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    present = [name for name in backends.NAMES if backends.unavailable(name, device) is None]
    chosen = [_backend(name, device) for name in args.backend or present]
    if args.full:
        return sum(full(backend, device, quiet=args.json) for backend in chosen) and 1

    kv_heads = args.kv_heads or args.heads
    if min(args.heads, kv_heads, args.head_dim, *args.contexts, *args.sequences) < 1 or args.heads % kv_heads:
        raise ValueError("bench kernels: sizes must be positive, and --heads a multiple of --kv-heads")
    clock = time.perf_counter
    if args.one_thread:
        clock = time.thread_time
        torch.set_num_threads(1)
    copied = copy_bandwidth(device, clock)
    results: list[KernelResult] = []
    for dtype in args.dtype:
        for context, sequences in itertools.product(args.contexts, args.sequences):
            shape = (args.heads, kv_heads, args.head_dim)
            results += measure(chosen, device, dtype, shape, sequences, context, 1, copied, clock)
        for context in args.contexts:
            shape = (args.heads, kv_heads, args.head_dim)
            results += measure(chosen, device, dtype, shape, max(1, 1024 // context), context, context, copied, clock)
    if args.json:
        print(json.dumps({"copy_gigabytes_per_second": copied / 1e9, "results": [asdict(r) for r in results]}))
        return 0
    _print(results, copied, f"{args.heads} query heads, {kv_heads} KV heads, head_dim {args.head_dim}")
    return 0


def _backend(name: str, device: str) -> backends.Backend:
    try:
        if not name.endswith(".py"):
            return backends.choose(name, device)
        mine = backends.from_file(Path(name))
    except (ValueError, OSError) as error:
        raise ValueError(f"bench kernels: {error}") from error
    if mine.paged_attention is reference.paged_attention:
        raise ValueError(f"bench kernels: backend {name}: it has no paged_attention, which is what is measured here")
    return mine


def copy_bandwidth(device: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """Bytes read and bytes written per second by a large copy."""
    source = torch.ones(COPY_BYTES, dtype=torch.uint8, device=device)
    destination = torch.empty_like(source)
    return 2 * COPY_BYTES / seconds(lambda: destination.copy_(source), device, clock)


def seconds(call: Callable[[], Any], device: str, clock: Callable[[], float]) -> float:
    """Median of at least three calls and a fifth of a second, after one that warms up."""

    def once() -> float:
        began = clock()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        return clock() - began

    once()
    times: list[float] = []
    while len(times) < 3 or sum(times) < 0.2:
        times.append(once())
    return statistics.median(times)


def measure(
    chosen: list[backends.Backend],
    device: str,
    dtype: str,
    shape: tuple[int, int, int],
    sequences: int,
    context: int,
    new: int,
    copied: float,
    clock: Callable[[], float],
) -> list[KernelResult]:
    """Each backend on `sequences` equal sequences, of whose context the last `new` tokens are this step's."""
    heads, kv_heads, head_dim = shape
    blocks = -(-context // BLOCK_SIZE)
    itemsize = _DTYPES[dtype].itemsize
    layer_bytes = sequences * blocks * 2 * kv_heads * BLOCK_SIZE * head_dim * itemsize
    layers = max(1, min(12, POOL_BYTES // layer_bytes))
    pool = torch.full(
        (sequences * blocks, layers, 2, kv_heads, BLOCK_SIZE, head_dim), 0.5, dtype=_DTYPES[dtype], device=device
    )
    tables = torch.randperm(sequences * blocks, device=device).to(torch.int32).view(sequences, blocks)
    query = torch.randn(sequences * new, heads, head_dim, device=device).to(_DTYPES[dtype])
    starts = torch.arange(0, sequences * new + 1, new, dtype=torch.int32, device=device)
    contexts = torch.full((sequences,), context, dtype=torch.int32, device=device)
    rows = query.view(sequences, new, heads, head_dim).transpose(1, 2)  # (sequences, heads, new, head_dim)
    index = tables.long()

    def gather_and_sdpa(layer: int) -> None:
        blocks_of = pool[index, layer]  # (sequences, blocks, 2, kv_heads, block_size, head_dim)
        kv = blocks_of.permute(2, 0, 3, 1, 4, 5).flatten(3, 4)[:, :, :, :context]
        scaled_dot_product_attention(rows, kv[0], kv[1], is_causal=new > 1, enable_gqa=kv_heads != heads)

    def every_layer(call: Callable[[int], Any]) -> Callable[[], Any]:
        return lambda: [call(layer) for layer in range(layers)]

    sdpa = seconds(every_layer(gather_and_sdpa), device, clock) / layers
    read = sequences * context * 2 * kv_heads * head_dim * itemsize + 2 * query.numel() * itemsize
    flops = 4 * sequences * heads * head_dim * sum(context - new + j + 1 for j in range(new))
    results = []
    for backend in chosen:
        if backend.name == "reference" and new > 1:
            continue

        def attend(layer: int, backend: backends.Backend = backend) -> None:
            backend.paged_attention(query, pool[:, layer], tables, starts, contexts, head_dim**-0.5)

        took = seconds(every_layer(attend), device, clock) / layers
        kind = "decode" if new == 1 else "prefill"
        rates = (read / took / 1e9, read / took / copied, flops / took / 1e9)
        results.append(KernelResult(backend.name, dtype, kind, sequences, context, took * 1e3, *rates, sdpa * 1e3))
    return results


def full(backend: backends.Backend, device: str, *, quiet: bool) -> int:
    """Conformance 34 and 35 in full: how many of the 2,916 shapes were answered wrongly."""
    product = itertools.product(
        problems.HEADS, problems.HEAD_DIMS, problems.BLOCK_SIZES, problems.MIXES, problems.DTYPES
    )
    wrong = count = 0
    for count, case in enumerate(product, 1):
        problem = problems.make(*case, seed=count)
        error = problem.error(problem.solve(backend.paged_attention, device))
        if not error < problems.TOLERANCE[case[-1]]:
            wrong += 1
            print(f"{backend.name}: {case} is {error:.1e} away from the oracle")
        if not quiet and count % 100 == 0:
            print(f"{backend.name}: {count} shapes, {wrong} wrong", file=sys.stderr)
    print(f"{backend.name}: {count} shapes compared with the oracle, {wrong} wrong")
    return wrong


def _print(results: list[KernelResult], copied: float, title: str) -> None:
    print(f"this machine copies {copied / 1e9:.1f} GB/s (read and written), {torch.get_num_threads()} threads")
    for kind in ("decode", "prefill"):
        table = Table(title=f"{kind}: {title}, block size {BLOCK_SIZE}, one layer")
        rate = "GB/s" if kind == "decode" else "GFLOP/s"
        for heading in ("dtype", "sequences", "context", "backend", "ms", rate, "of copy", "gather + SDPA, ms"):
            table.add_column(heading, justify="left" if heading in ("dtype", "backend") else "right")
        for r in results:
            if r.kind == kind:
                speed = r.gigabytes_per_second if kind == "decode" else r.gigaflops
                share = f"{r.share:.0%}" if kind == "decode" else ""
                times = (f"{r.milliseconds:.3f}", f"{speed:.1f}", share, f"{r.sdpa_milliseconds:.3f}")
                table.add_row(r.dtype, str(r.sequences), str(r.context), r.backend, *times)
        if table.row_count:
            Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m minipaged.cli.bench_kernels", description=__doc__)
    add_arguments(parser)
    raise SystemExit(run(parser.parse_args()))
