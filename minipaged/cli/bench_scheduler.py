"""Scheduler: microseconds of bookkeeping per step and per running sequence, schedule and commit together.

No model: the tokens that would be drawn are handed back at once. Every sequence decodes, so each step touches all of
them, and one in sixteen opens a block.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.plan import Draw, StepPlan, StepResult
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler

BLOCK_SIZE = 16
PROMPT = 100
ROUNDS = 5  # the median of which counts
_VOCABULARY = 1000


@dataclass(frozen=True, slots=True)
class SchedulerResult:
    """Bookkeeping at one number of running sequences."""

    running: int
    microseconds_per_step: float
    microseconds_per_sequence: float


class _Echo:
    """Draws the same token for everyone, with nothing computed."""

    _draw = (Draw(7, 0.0),)

    def run(self, plan: StepPlan) -> StepResult:
        return StepResult([self._draw if chunk.draws else () for chunk in plan.chunks])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--running, --json."""
    parser.add_argument(
        "--running", type=int, nargs="+", default=[1, 4, 16, 64, 256, 1024], metavar="N",
        help="running sequences (default 1 4 16 64 256 1024)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    if min(args.running) < 1:
        raise ValueError(f"bench scheduler: --running has {min(args.running)}; it must be at least 1")
    results = [measure(running) for running in args.running]
    if args.json:
        print(json.dumps([asdict(result) for result in results]))
        return 0
    table = Table(title="Schedule and commit, all decoding")
    for heading in ("running", "µs a step", "µs a sequence"):
        table.add_column(heading, justify="right")
    for result in results:
        per_step, per_sequence = result.microseconds_per_step, result.microseconds_per_sequence
        table.add_row(str(result.running), f"{per_step:.0f}", f"{per_sequence:.2f}")
    Console().print(table)
    return 0


def measure(running: int) -> SchedulerResult:
    """Steps of so many decoding sequences, whole blocks of them, so that each opens its share of blocks."""
    steps = BLOCK_SIZE * max(1, 256 // running)
    last = PROMPT + (ROUNDS + 1) * steps
    memory = KVManager(BlockPool(running * (last // BLOCK_SIZE + 2)), PrefixTree(BLOCK_SIZE))
    scheduler = Scheduler(memory, max_batch_tokens=running * PROMPT, max_sequences=running)
    engine = Engine(scheduler, _Echo(), ModelConfig(_VOCABULARY, last + 10, 1, 1, 1, 1, 1, 1))
    for number in range(running):
        prompt = [number % _VOCABULARY, number // _VOCABULARY, *range(PROMPT - 2)]
        engine.add_request(prompt, SamplingParams(max_tokens=last - PROMPT + 5))
    engine.step()
    runner = engine.runner

    def seconds_per_step() -> float:
        gc.collect()
        gc.disable()
        began = time.perf_counter()
        for _ in range(steps):
            plan = scheduler.schedule()
            scheduler.commit(plan, runner.run(plan))
        seconds = time.perf_counter() - began
        gc.enable()
        return seconds / steps

    per_step = 1e6 * statistics.median(seconds_per_step() for _ in range(ROUNDS))
    return SchedulerResult(running, per_step, per_step / running)
