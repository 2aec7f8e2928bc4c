"""One request alone: milliseconds a token, and how much of the memory's speed is used.

A single stream multiplies every weight with one row, so it is as fast as the weights can be read. Bytes are those of
the matrices and the head; the cache's are few beside them. Copy bandwidth is measured before and after every round, for
on a shared machine it changes from one second to the next.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from minipaged.cli.random_checkpoint import SIZES, write_checkpoint
from minipaged.cli.recording import add_record_option, recording, require_writable

PROMPT_TOKENS = 16
ANSWER_TOKENS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged bench single`."""
    parser.add_argument(
        "--size", choices=sorted(SIZES), default="124M", help="parameters of the random model (default 124M)"
    )
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="of weights and cache (default float32)"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="the median of which counts (default 5)")
    parser.add_argument("--parts", action="store_true", help="also say where the time goes (the clocks cost a little)")
    add_record_option(parser, "all rounds (it costs a little)")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    if args.rounds < 1:
        raise ValueError(f"bench single: --rounds is {args.rounds}; it must be at least 1")
    require_writable(args.record)
    from minipaged.cli.bench_kernels import copy_bandwidth
    from minipaged.cli.part_timer import PartTimer
    from minipaged.llm import LLM
    from minipaged.sampling_params import SamplingParams

    size = SIZES[args.size]
    with tempfile.TemporaryDirectory() as folder:
        llm = LLM(write_checkpoint(Path(folder) / "model", size), dtype=args.dtype, num_blocks=16)
    engine = llm.engine
    weight_bytes = (size.matrix_parameters + size.head_parameters) * llm.model.dtype.itemsize
    timer = PartTimer(llm) if args.parts else None
    params = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS, ignore_eos=True)

    def decode() -> list[float]:
        """Seconds of each step after the prompt's."""
        engine.add_request(list(range(PROMPT_TOKENS)), params)
        engine.step()
        if timer is not None:
            timer.seconds.clear()
        steps = []
        while engine.has_work:
            began = time.perf_counter()
            engine.step()
            steps.append(time.perf_counter() - began)
        return steps

    decode()
    rounds = []  # (seconds a step, copy bandwidth, share of it)
    with recording(llm, args.record):
        for _ in range(args.rounds):
            before = copy_bandwidth(llm.model.device.type)
            per_step = statistics.median(decode())
            copied = (before + copy_bandwidth(llm.model.device.type)) / 2
            rounds.append((per_step, copied, weight_bytes / per_step / copied))
    per_step, copied, share = sorted(rounds, key=lambda row: row[2])[len(rounds) // 2]
    parts = (
        {part: taken / (ANSWER_TOKENS - 1) for part, taken in sorted(timer.seconds.items(), key=lambda part: -part[1])}
        if timer
        else {}
    )
    if args.json:
        figures = {
            "milliseconds": 1e3 * per_step, "weight_gigabytes_per_second": weight_bytes / per_step / 1e9,
            "copy_gigabytes_per_second": copied / 1e9, "share": share, "part_seconds": parts,
        }  # fmt: skip
        print(json.dumps(figures))
        return 0
    console = Console(highlight=False)
    console.print(
        f"{args.size} parameters, {args.dtype}, one request: {1e3 * per_step:.1f} ms a token. Its "
        f"{weight_bytes / 1e6:.0f} MB of weights are read at {weight_bytes / per_step / 1e9:.1f} GB/s, {share:.0%} of "
        f"the {copied / 1e9:.1f} GB/s that a copy reads and writes here."
    )
    if parts:
        table = Table(title="the last round, a token")
        table.add_column("part")
        table.add_column("ms", justify="right")
        for part, taken in parts.items():
            table.add_row(part, f"{1e3 * taken:.2f}")
        console.print(table)
    return 0
