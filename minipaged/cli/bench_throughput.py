"""Throughput: output tokens per second on a random GPT-2, beside others and beside what the machine could do at best.

Every contender runs in a process of its own, and they take turns, so that a machine that slows down slows all of them.
The limit is the work's matrix operations ÷ the rate of matrix products measured in the same run: no engine that
computes every token once can be faster.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from minipaged.cli.random_checkpoint import SIZES, Size, write_checkpoint
from minipaged.cli.recording import add_record_option, require_writable

_REQUESTS = {"12.6M": 64, "124M": 32}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged bench throughput`."""
    parser.add_argument(
        "--size", choices=sorted(SIZES), default="12.6M", help="parameters of the random model (default 12.6M)"
    )
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="of weights and cache (default float32)"
    )
    parser.add_argument(
        "--against", choices=("transformers", "vllm"), nargs="+", default=[], help="who else runs (default: nobody)"
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter that has vLLM (default: this one)")
    parser.add_argument(
        "--requests", type=int, metavar="N", help="how many (default: 64 of the small model, 32 of the large)"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="the median of which counts (default 3)")
    parser.add_argument("--attention", metavar="NAME", help="our kernels' backend (default auto)")
    parser.add_argument("--parts", action="store_true", help="also say where our time goes (the clocks cost a little)")
    add_record_option(parser, "our last round")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure in turns and print."""
    if args.rounds < 1 or (args.requests is not None and args.requests < 4):
        raise ValueError(f"bench throughput: --rounds {args.rounds}, --requests {args.requests}; at least 1 and 4")
    size = SIZES[args.size]
    work = workload(size, args.requests or _REQUESTS[args.size], args.dtype)
    work["parts"] = args.parts
    if args.attention:
        work["options"] = {"attention": args.attention}
    if args.record:
        require_writable(args.record)
        work["record"] = str(Path(args.record).absolute())
    contenders = ["ours", *args.against]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = write_checkpoint(Path(folder) / "model", size)
        file = Path(folder) / "workload.json"
        file.write_text(json.dumps(work))
        for number in range(args.rounds):
            for name in contenders:
                python = args.python if name == "vllm" and args.python else sys.executable
                rounds[name].append(_serve(python, name, checkpoint, file))
                if not args.json:
                    figures = rounds[name][-1]
                    rate = figures["tokens"] / figures["seconds"]
                    print(f"round {number + 1}, {name}: {rate:.0f} tokens/s", file=sys.stderr)

    rates = {name: statistics.median(f["tokens"] / f["seconds"] for f in rounds[name]) for name in contenders}
    matrix_rate = max(figures["matrix_rate"] for figures in rounds["ours"])
    limit = sum(work["lengths"]) / (operations(size, work) / matrix_rate)
    median = min(rounds["ours"], key=lambda figures: abs(figures["tokens"] / figures["seconds"] - rates["ours"]))
    parts = dict(sorted(median["part_seconds"].items(), key=lambda part: -part[1]))
    if args.json:
        print(
            json.dumps({"tokens_per_second": rates, "limit": limit, "gflops": matrix_rate / 1e9, "part_seconds": parts})
        )
        return 0
    table = Table(title=f"{args.size} parameters, {args.dtype}, {len(work['prompts'])} requests")
    for heading in ("", "tokens/s", "ours ÷ it", "of the limit"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in contenders:
        table.add_row(name, f"{rates[name]:.0f}", f"{rates['ours'] / rates[name]:.2f}", f"{rates[name] / limit:.0%}")
    table.add_row(f"limit at {matrix_rate / 1e9:.0f} GFLOP/s", f"{limit:.0f}", "", "")
    Console().print(table)
    if parts:
        table = Table(title=f"our {median['seconds']:.2f} s")
        for heading in ("part", "seconds", "share"):
            table.add_column(heading, justify="left" if heading == "part" else "right")
        for part, seconds in parts.items():
            table.add_row(part, f"{seconds:.3f}", f"{seconds / median['seconds']:.0%}")
        Console().print(table)
    return 0


def workload(size: Size, num_requests: int, dtype: str) -> dict[str, Any]:
    """Prompts of 16 to 256 random tokens, 16 to 128 to generate, the same ones every time."""
    noise = random.Random(0)
    prompts = [
        [noise.randrange(1, size.vocab_size) for _ in range(noise.randint(16, 256))] for _ in range(num_requests)
    ]
    lengths = [noise.randint(16, 128) for _ in prompts]
    return {"prompts": prompts, "lengths": lengths, "dtype": dtype, "batch_size": 16}


def operations(size: Size, work: dict[str, Any]) -> float:
    """Matrix operations of the work: two for each weight and token, the head's for drawn tokens only, and attention's.

    A token at position p reads p + 1 keys and values: 4 · width · (p + 1) operations a layer.
    """
    total = 0.0
    for prompt, length in zip(work["prompts"], work["lengths"], strict=True):
        tokens = len(prompt) + length - 1  # the last one drawn is never fed back
        total += 2 * size.matrix_parameters * tokens + 2 * size.head_parameters * length
        total += 4 * size.width * size.num_layers * tokens * (tokens + 1) / 2
    return total


def _serve(python: str, name: str, checkpoint: Path, file: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("contender.py")
    done = subprocess.run([python, str(script), name, str(checkpoint), str(file)], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ValueError(f"bench throughput: {name} failed under {python}: {last}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures
