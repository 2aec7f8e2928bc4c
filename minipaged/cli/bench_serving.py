"""Serving: an hour of recorded or made traffic through the real scheduler and memory, on a cost model's clock.

Nothing is computed but the bookkeeping: the model is an arithmetic of bytes and operations, whose numbers `--costs`
prints with their sources. `--trace` replays one of Azure's CSV files or one of Mooncake's JSON lines; without it,
requests come at random, with the lengths of `--mix`. Several policies, orders and rates are compared on the same
requests.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from itertools import product
from pathlib import Path

from rich.console import Console

from minipaged.cli.latency_chart import latency_chart
from minipaged.cli.options import MOST_BLOCKS, MOST_REQUESTS, check_range
from minipaged.cli.serving_report import Run, print_report
from minipaged.cost_model import PRESETS, CostModel, preset
from minipaged.order import ORDERS
from minipaged.progress import ProgressBar
from minipaged.serving.policy import POLICIES
from minipaged.serving.service import ServiceConfig, serve
from minipaged.traffic import (
    MIXES,
    TOKENS_PER_HASH,
    TimedRequest,
    at_speed,
    closely_limited,
    first_requests,
    mean_rate,
    poisson,
    read_traffic,
)

_COMMAND = "bench serving"
_MADE_REQUESTS = 1000
# Requests a second. Below, the clock counts so many seconds that a step's are lost in them; above, all come at once.
_LEAST_RATE, _MOST_RATE = 1e-6, 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What comes, how it is served, on what, and what is printed."""
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="an Azure CSV file, or a Mooncake .jsonl file (default: made requests)",
    )
    parser.add_argument(
        "--mix", choices=sorted(MIXES), default="sharegpt", help="lengths of made requests (default sharegpt)"
    )
    parser.add_argument(
        "--rate",
        type=float,
        nargs="+",
        metavar="R",
        help="requests a second (default: the trace's own; 1 for made ones)",
    )
    parser.add_argument(
        "--requests",
        type=int,
        metavar="N",
        help=f"the first N only (default: all of a trace; {_MADE_REQUESTS} made ones)",
    )
    parser.add_argument(
        "--priorities", type=int, default=2, metavar="N", help="how many made requests have, at random (default 2)"
    )
    parser.add_argument(
        "--close-limits", action="store_true",
        help="each user limits the answer to the next power of two above its length, instead of --max-tokens",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of made requests (default 0)")
    parser.add_argument(
        "--policy", nargs="+", choices=POLICIES, default=["paged"], metavar="NAME",
        help="how it is served (default paged). "
        + "; ".join(f"{policy.name}: {policy.summary}" for policy in POLICIES.values()),
    )  # fmt: skip
    parser.add_argument("--order", nargs="+", choices=ORDERS, default=["fcfs"], help="who goes first (default fcfs)")
    parser.add_argument(
        "--model", choices=PRESETS, help="the cost model (default h100-llama-8b; a100-opt-13b for made requests)"
    )
    parser.add_argument(
        "--slots", type=int, metavar="N", help="token slots of the device (default: what the model leaves)"
    )
    parser.add_argument(
        "--host-slots", type=int, metavar="N", help="token slots of the host (default: four times as many)"
    )
    parser.add_argument(
        "--block-size",
        type=int,
        metavar="N",
        help=f"token slots in a block (default 16; {TOKENS_PER_HASH} for Mooncake's)",
    )
    for name, what in (
        ("max_batch_tokens", "tokens in a step at most"),
        ("max_sequences", "answers written at once at most"),
        ("max_tokens", "what a user who says nothing allows for an answer, in tokens"),
        ("long_from", "tokens of prompt and answer above which a request counts as long"),
    ):
        default = next(field.default for field in fields(ServiceConfig) if field.name == name)
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=default, metavar="N", help=f"{what} (default {default})")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the mean normalised latency over the rate")
    parser.add_argument("--costs", action="store_true", help="print the cost model's numbers and their sources")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Serve, and print."""
    console = Console()
    name = args.model or ("h100-llama-8b" if args.trace else "a100-opt-13b")
    cost_model = preset(name)
    _check(args, cost_model)
    if args.costs and not args.json:
        _print_costs(console, name)
    own_rate = mean_rate(_trace(args, 1)) if args.trace else 1.0
    rates = args.rate or [own_rate]
    total = len(args.policy) * len(args.order) * len(rates) * sum(1 for _ in _traffic(args, rates[0], own_rate, 1))
    runs: list[Run] = []
    began = time.process_time()
    with ProgressBar() as bar:
        for policy_name, order, rate in product(args.policy, args.order, rates):
            policy = replace(POLICIES[policy_name], order=ORDERS[order])
            done = sum(run.figures.num_requests + run.figures.num_refused for run in runs)
            traffic = _seen(_traffic(args, rate, own_rate), bar, done, total)
            runs.append(Run(_title(args, policy_name, order), rate, serve(policy, traffic, cost_model, _config(args))))
    seconds = time.process_time() - began
    if args.json:
        print(json.dumps([{"name": run.name, "rate": run.rate, **asdict(run.figures)} for run in runs]))
    else:
        _print_report(console, args, runs, name, seconds)
    if args.svg is not None:  # last: a full disk takes no figure away
        _draw(args.svg, runs, name)
    return 0


def _print_report(console: Console, args: argparse.Namespace, runs: list[Run], model: str, seconds: float) -> None:
    print_report(console, runs, by_length=args.order != ["fcfs"])
    simulated = sum(run.figures.seconds for run in runs)
    finished = sum(run.figures.num_finished for run in runs)
    steps = sum(run.figures.num_steps for run in runs)
    console.print(
        f"{model}: {finished:,} requests in {steps:,} steps, {simulated:,.0f} simulated seconds; the bookkeeping took "
        f"{seconds:.1f} seconds of one core."
    )


def _check(args: argparse.Namespace, cost_model: CostModel) -> None:
    """Refuse what cannot be served, before anything is.

    Raises:
        ValueError: names the option.
    """
    for name in ("slots", "block_size", "priorities", "max_batch_tokens", "max_sequences", "max_tokens", "long_from"):
        check_range(_COMMAND, f"--{name.replace('_', '-')}", getattr(args, name), 1)
    check_range(_COMMAND, "--requests", args.requests, 1, MOST_REQUESTS)
    for rate in args.rate or ():
        check_range(_COMMAND, "--rate", rate, _LEAST_RATE, _MOST_RATE)
    config = _config(args)
    block_size, most_slots = config.block_size, MOST_BLOCKS * config.block_size
    slots = cost_model.network.kv_slots if config.num_slots is None else config.num_slots
    if args.slots is None and block_size > slots:
        check_range(_COMMAND, "--block-size", block_size, 1, slots)
    range_ = f"at least {block_size}, a block of --block-size, and at most {most_slots}"
    if not block_size <= slots <= most_slots:
        raise ValueError(f"{_COMMAND}: --slots is {slots}; it must be {range_}")
    host_slots = config.num_host_slots
    if host_slots and not block_size <= host_slots <= most_slots:
        raise ValueError(f"{_COMMAND}: --host-slots is {host_slots}; it must be 0, for no host pool, or {range_}")
    for name in args.policy:
        budget = POLICIES[name].max_batch_tokens or config.max_batch_tokens
        if config.max_sequences > budget:
            raise ValueError(
                f"{_COMMAND}: --max-sequences is {config.max_sequences}; it must be at most {budget}, the tokens in a "
                f"step of --policy {name}, so that each has one"
            )
    # os.path: to it, a name that no file can have is simply no folder.
    if args.svg is not None and not os.path.isdir(args.svg.parent):
        raise ValueError(f"{_COMMAND}: --svg {args.svg}: there is no folder {args.svg.parent}")
    if args.svg is not None and os.path.isdir(args.svg):
        raise ValueError(f"{_COMMAND}: --svg {args.svg}: it is a folder; it must be a file's name")


def _title(args: argparse.Namespace, policy: str, order: str) -> str:
    """What tells a run from the others: its policy, its order, or both."""
    if len(args.order) == 1:
        return policy
    return order if len(args.policy) == 1 else f"{policy} {order}"


def _config(args: argparse.Namespace) -> ServiceConfig:
    mooncake = args.trace is not None and args.trace.suffix == ".jsonl"
    return ServiceConfig(
        num_slots=args.slots,
        num_host_slots=args.host_slots,
        block_size=args.block_size or (TOKENS_PER_HASH if mooncake else 16),
        max_batch_tokens=args.max_batch_tokens,
        max_sequences=args.max_sequences,
        max_tokens=args.max_tokens,
        long_from=args.long_from,
    )


def _trace(args: argparse.Namespace, tokens_per_hash: int = TOKENS_PER_HASH) -> Iterator[TimedRequest]:
    return first_requests(read_traffic(args.trace, tokens_per_hash), args.requests)


def _traffic(
    args: argparse.Namespace, rate: float, own_rate: float, tokens_per_hash: int = TOKENS_PER_HASH
) -> Iterator[TimedRequest]:
    if args.trace is not None:
        traffic = at_speed(_trace(args, tokens_per_hash), rate / own_rate)
    else:
        made = poisson(MIXES[args.mix], rate, seed=args.seed, num_priorities=args.priorities)
        traffic = first_requests(made, args.requests or _MADE_REQUESTS)
    return closely_limited(traffic) if args.close_limits else traffic


def _seen(traffic: Iterator[TimedRequest], bar: ProgressBar, done: int, total: int) -> Iterator[TimedRequest]:
    """The same, and the bar shows how far it is: so many were done before, of so many in all."""
    num_tokens = 0
    for number, request in enumerate(traffic):
        if bar.is_due():
            bar.update(done + number, total, num_tokens)
        num_tokens += request.num_output
        yield request


def _draw(path: Path, runs: list[Run], model: str) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for run in sorted(runs, key=lambda run: run.rate):
        lines.setdefault(run.name, []).append((run.rate, run.figures.all.normalised.mean))
    lines = {run.name: lines[run.name] for run in runs}  # in the order of the tables
    chart = latency_chart(lines, f"{model}: mean normalised latency", "seconds a token")
    try:
        path.write_text(chart, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{_COMMAND}: --svg {path}: it cannot be written: {error.strerror}") from None


def _print_costs(console: Console, name: str) -> None:
    for part in PRESETS[name]:
        console.print(f"[bold]{part.name}[/]")
        for field in fields(part):
            if field.name not in ("name", "source"):
                console.print(f"  {field.name:20} {getattr(part, field.name):,.6g}", highlight=False)
        console.print("  " + part.source.replace("\n", "\n  "), style="dim", highlight=False)
