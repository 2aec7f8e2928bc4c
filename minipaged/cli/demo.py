"""`minipaged demo`: some twenty prompts on a pool that is too small for them, then the same work done four ways.

First the requests arrive over time, at fixed steps, and are served by continuous batching on the paged cache. Then come
some of the answers, and a scoreboard with the three older ways beside it. The four must give the same answers.

Puts the parts together: the moving picture is `viz`'s, the measuring `four_ways`', the table `scoreboard`'s.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from minipaged.cli.demo_prompts import DEMO_PROMPTS, SHOWN_TITLES
from minipaged.cli.options import add_model_option, settle_threads
from minipaged.cli.recording import add_record_option, replay_hint

if TYPE_CHECKING:
    from rich.console import Console

    from minipaged.cli.agreement import Agreement
    from minipaged.cli.four_ways import Score, Task
    from minipaged.cli.step_meter import StepMeter
    from minipaged.llm import LLM, Stream
    from minipaged.request import Request
    from minipaged.trace import StepRecord

BLOCK_SIZE = 16
NUM_AT_START = 4
STEPS_BETWEEN_ARRIVALS = 4
WATCHED_STEPS_PER_SECOND = 32.0  # or all would be over before it is seen; + and - change it
STEPS_PER_LINE = 25  # where it cannot be drawn


@dataclass(frozen=True, slots=True)
class _Served:
    """A task and its answer."""

    task: Task
    token_ids: tuple[int, ...]
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged demo`."""
    parser.description = (
        "Answer some twenty prompts, English and Chinese, that arrive over time, on a KV pool that is too small for "
        "all of them at once; then do the same work in four ways and compare. Takes about a minute."
    )
    add_model_option(parser)
    parser.add_argument("--num-blocks", type=int, default=64, metavar="N", help="blocks in the KV pool (default 64)")
    parser.add_argument("--max-tokens", type=int, default=176, metavar="N", help="tokens of an answer (default 176)")
    parser.add_argument("--requests", type=int, metavar="N", help="take only the first N prompts")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another seed, another order of arrival (default 0)"
    )
    add_record_option(parser)
    parser.add_argument("--json", action="store_true", help="print the figures only, as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs the demo; 1 when answers differ where rounding does not explain it."""
    for name in ("num_blocks", "max_tokens", "requests"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise ValueError(f"demo: --{name.replace('_', '-')} is {value}; it must be at least 1")

    import torch
    from rich.console import Console

    from minipaged.cli.agreement import Agreement
    from minipaged.cli.scoreboard import print_scoreboard
    from minipaged.llm import LLM

    started_seconds = time.perf_counter()
    # The figures alone go to standard output then; who watches a terminal sees the rest all the same.
    console = Console(stderr=args.json, highlight=False, quiet=args.json and not sys.stderr.isatty())

    def new_llm() -> LLM:
        llm = LLM(args.model, num_blocks=args.num_blocks, block_size=BLOCK_SIZE)
        settle_threads(llm)
        return llm

    llm = new_llm()
    tasks = _tasks(llm, args.max_tokens, args.requests, args.seed, console)
    _print_opening(console, llm, tasks)
    meter, served = _serve(console, llm, tasks, args.record)
    _print_served(console, meter, served)

    scores, agreements = _measure(console, new_llm, tasks)
    agreements.append(Agreement.of(scores[0].oracle, [one.token_ids for one in served]))
    total_slots = args.num_blocks * BLOCK_SIZE
    print_scoreboard(console, scores, agreements, total_slots, BLOCK_SIZE, torch.get_num_threads())
    console.print(f"[dim]The whole demo took {time.perf_counter() - started_seconds:.0f} s.[/]")
    if args.record:
        console.print(replay_hint(args.record), soft_wrap=True, markup=False)
    if args.json:
        print(json.dumps(_figures(llm, tasks, meter, scores, agreements), ensure_ascii=False, indent=2))
    return int(any(agreement.different for agreement in agreements))


def _tasks(llm: LLM, max_tokens: int, num_requests: int | None, seed: int, console: Console) -> list[Task]:
    """The prompts as token ids, in their order of arrival; those that could never fit are left out, and counted."""
    from minipaged.cli.four_ways import Task
    from minipaged.sampling_params import SamplingParams
    from minipaged.viz.theme import many

    if llm.tokenizer is None:
        raise ValueError("demo: this model has no tokenizer.json, and the demo's prompts are text")
    newline = llm.tokenizer.encode("\n")
    ends_a_line = (newline[0],) if len(newline) == 1 else ()
    tasks: list[Task] = []
    too_long: list[Task] = []
    limit = min(llm.model_config.max_positions, llm.kv_cache.num_blocks * BLOCK_SIZE)
    for prompt in DEMO_PROMPTS[:num_requests]:
        stop = ends_a_line if prompt.one_line else ()
        params = SamplingParams(max_tokens=max_tokens, temperature=0, stop_token_ids=stop)
        task = Task(prompt.title, tuple(llm.tokenizer.encode(prompt.text)), params)
        (tasks if task.max_slots <= limit else too_long).append(task)
    if not tasks:
        shortest = min(task.max_slots for task in too_long)
        raise ValueError(
            f"demo: even the shortest request needs {shortest} token slots, and there are {limit}; "
            "give more --num-blocks or fewer --max-tokens"
        )
    if too_long:
        console.print(
            f"[yellow]Left out: {many(len(too_long), 'prompt')} that may need more than {limit} token slots.[/]"
        )
    random.Random(seed).shuffle(tasks)
    return tasks


# Serving --------------------------------------------------------------------------------------------------------------


def _serve(console: Console, llm: LLM, tasks: list[Task], record: str | None) -> tuple[StepMeter, list[_Served]]:
    """Requests arrive over time and are served together, before the eyes of who sits at the terminal.

    Returns:
        What the steps did, and the answers in the order of arrival.
    """
    from minipaged.cli.step_meter import StepMeter
    from minipaged.cli.terminal_text import printable
    from minipaged.recorder import Recorder
    from minipaged.trace_file import LiveTrace, TraceWriter
    from minipaged.viz.answers import Answers
    from minipaged.viz.history import History
    from minipaged.viz.player import Player
    from minipaged.viz.stage import is_interactive, perform

    assert llm.tokenizer is not None
    streams: list[Stream] = []

    def title(request: Request) -> str:
        return tasks[request.id].title

    def step() -> bool:
        while len(streams) < len(tasks) and _arrival_step(len(streams)) <= llm.engine.scheduler.num_steps:
            task = tasks[len(streams)]
            streams.append(llm.stream(list(task.token_ids), task.params))
        if len(streams) == len(tasks) and not llm.engine.has_work:
            return False
        llm.step()
        return True

    meter = StepMeter()
    llm.engine.listeners.append(meter)
    with ExitStack() as stack:
        trace = LiveTrace()
        sinks = [stack.enter_context(TraceWriter(record))] if record else []
        stack.enter_context(Recorder(llm.engine, trace, *sinks, description=llm.description, title=title))
        if is_interactive(console):
            step()
            history = History(trace)
            player = Player(history, live=True, speed=WATCHED_STEPS_PER_SECOND, has_texts=True)
            perform(player, console, step=step, answers=Answers(history, llm.tokenizer.decode), stays=False)
        else:
            llm.engine.listeners.append(partial(_print_step, console, llm, streams, len(tasks)))
        while step():  # all of it, or what `q` has left
            pass
    return meter, [
        _Served(task, tuple(stream.request.sequences[0].output_token_ids), printable("".join(map(str, stream))))
        for task, stream in zip(tasks, streams, strict=True)
    ]


def _print_step(console: Console, llm: LLM, streams: list[Stream], num_requests: int, record: StepRecord) -> None:
    """A line now and then, where no picture can be drawn."""
    if record.step % STEPS_PER_LINE:
        return
    num_done = sum(stream.request.finished for stream in streams)
    console.print(
        f"step {record.step:4d}  blocks {record.held_slots // BLOCK_SIZE:3d}/{llm.kv_cache.num_blocks}  "
        f"running {record.num_running:2d}  waiting {record.num_waiting:2d}  done {num_done:2d}/{num_requests}",
        soft_wrap=True,
    )


def _arrival_step(number: int) -> int:
    """The step at which a request comes: some at once, then one every few steps."""
    return max(0, number - NUM_AT_START + 1) * STEPS_BETWEEN_ARRIVALS


def _print_opening(console: Console, llm: LLM, tasks: list[Task]) -> None:
    from minipaged.cli.scoreboard import print_prose
    from minipaged.viz.theme import many

    lengths = [len(task.token_ids) for task in tasks]
    needed = sum(-(-task.max_slots // BLOCK_SIZE) for task in tasks)
    print_prose(console, f"[dim]{llm.description}[/]")
    print_prose(
        console,
        f"{many(len(tasks), 'prompt')} of {min(lengths)} to {max(lengths)} tokens arrive over time. Together they may "
        f"come to need {many(needed, 'block')}; the pool has {llm.kv_cache.num_blocks}.",
    )
    console.print()


def _print_served(console: Console, meter: StepMeter, served: list[_Served]) -> None:
    """Says how it went, and prints some of the answers."""
    from rich.text import Text

    from minipaged.cli.scoreboard import WIDEST_TEXT_CELLS, print_prose
    from minipaged.cli.terminal_text import wrap
    from minipaged.viz.theme import many

    given_up = "No request had to give its blocks up."
    if meter.num_preemptions:
        times = "Once" if meter.num_preemptions == 1 else f"{meter.num_preemptions} times"
        given_up = (
            f"{times} a request gave its blocks to an older one and was resumed later; for that, "
            f"{many(meter.num_recomputed, 'token')} had to be computed again."
        )
    all_were = "The one was" if len(served) == 1 else f"All {len(served)} were"
    print_prose(
        console,
        f"{all_were} answered in {many(meter.steps, 'step')}, {meter.mean_batch:.1f} of them at a time on average, "
        f"while up to {meter.peak_waiting} waited for blocks. {given_up} Some of the answers:",
    )
    shown = [one for title in SHOWN_TITLES for one in served if one.task.title == title] or served[:2]
    for one in shown:
        cut_off = len(one.token_ids) == one.task.params.max_tokens
        # It may begin by ending the question with the full stop that was left off.
        answer = one.text.lstrip("。.\n ").rstrip("\ufffd \n") + (" …" if cut_off else "")
        console.print()
        console.print(Text(one.task.title, "bold cyan"))
        for line in wrap(answer, min(console.width, WIDEST_TEXT_CELLS) - 2):
            console.print(Text("  " + line), no_wrap=True)
    console.print()


# Measuring ------------------------------------------------------------------------------------------------------------


def _measure(console: Console, new_llm: Callable[[], LLM], tasks: list[Task]) -> tuple[list[Score], list[Agreement]]:
    """The scores of the four ways, and how the answers of the last three agree with those of the first."""
    from minipaged.cli.agreement import Agreement
    from minipaged.cli.four_ways import continuous_batching, serial_without_cache, static_batches

    llm = new_llm()  # what the requests just served have left in the cache would be a present
    total_slots = llm.kv_cache.num_blocks * BLOCK_SIZE
    in_place = console.is_terminal and not console.is_dumb_terminal
    status = console.status("") if in_place else None
    number = 0

    def begin(name: str) -> Callable[[int], None]:
        """Says which way is being measured; returns what is to be told how many requests are answered."""
        nonlocal number
        number += 1
        line = f"measuring {number} of 4: {name}"
        if status is None:
            console.print(line)
            return lambda num_done: None
        status.start()
        status.update(line)
        return lambda num_done: status.update(f"{line}, {num_done} of {len(tasks)} answered")

    try:
        scores = [
            serial_without_cache("serial, no cache", llm.model, tasks, begin),
            static_batches("serial, cache", llm.model, tasks, 1, total_slots, begin),
            static_batches("static batches", llm.model, tasks, len(tasks), total_slots, begin),
            continuous_batching("continuous, paged", llm, tasks, begin),
        ]
    finally:
        if status is not None:
            status.stop()
    return scores, [Agreement.of(scores[0].oracle, score.answers) for score in scores[1:]]


def _figures(
    llm: LLM, tasks: list[Task], meter: StepMeter, scores: list[Score], agreements: list[Agreement]
) -> dict[str, Any]:
    """The object that --json prints."""
    return {
        "model": llm.description,
        "requests": len(tasks),
        "prompt_tokens": sum(len(task.token_ids) for task in tasks),
        "num_blocks": llm.kv_cache.num_blocks,
        "block_size": BLOCK_SIZE,
        "arriving_over_time": {
            "steps": meter.steps,
            "mean_batch": meter.mean_batch,
            "peak_waiting": meter.peak_waiting,
            "preemptions": meter.num_preemptions,
            "recomputed_tokens": meter.num_recomputed,
            "peak_held_slots": meter.peak_held_slots,
            "utilisation": meter.live_slots / meter.held_slots,
        },
        "ways": [
            {
                "name": score.name,
                "seconds": score.seconds,
                "generated_tokens": score.num_generated,
                "tokens_per_second": score.tokens_per_second,
                "steps": score.steps,
                "computed_tokens": score.num_computed,
                "mean_batch": score.mean_batch,
                "mean_held_slots": score.held_slots / score.steps,
                "mean_live_slots": score.live_slots / score.steps,
                "peak_held_slots": score.peak_held_slots,
                "utilisation": score.utilisation,
            }
            for score in scores
        ],
        "answers": {
            "identical": min(agreement.identical for agreement in agreements),
            "near_ties": max(agreement.near_ties for agreement in agreements),
            "different": max(agreement.different for agreement in agreements),
        },
    }
