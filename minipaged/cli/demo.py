"""`minipaged demo`: some twenty prompts on a pool that is too small for them, then the same work done four ways.

First the requests arrive over time, at fixed steps, and are served by continuous batching on the paged cache. Then come
some of the answers, and a scoreboard with the three older ways beside it. The four must give the same answers.

Puts the parts together and prints; the measuring is `four_ways`', the moving picture `demo_view`'s.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from minipaged.cli.agreement import NEAR_TIE, Agreement
from minipaged.cli.demo_prompts import DEMO_PROMPTS, SHOWN_TITLES
from minipaged.cli.options import add_model_option

if TYPE_CHECKING:
    from rich.console import Console

    from minipaged.cli.four_ways import Score, StepMeter, Task
    from minipaged.llm import LLM
    from minipaged.request import Sequence

BLOCK_SIZE = 16
NUM_AT_START = 4
STEPS_BETWEEN_ARRIVALS = 4
WIDEST_TEXT_CELLS = 100  # prose wider than this is hard to read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged demo`."""
    parser.description = (
        "Answer some twenty prompts, English and Chinese, that arrive over time, on a KV pool that is too small for "
        "all of them at once; then do the same work in four ways and compare. Takes about half a minute."
    )
    add_model_option(parser)
    parser.add_argument("--num-blocks", type=int, default=64, metavar="N", help="blocks in the KV pool (default 64)")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N", help="tokens of an answer (default 128)")
    parser.add_argument("--requests", type=int, metavar="N", help="take only the first N prompts")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed, another order of arrival")
    parser.add_argument("--json", action="store_true", help="print the figures only, as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs the demo; 1 when an answer differs where only rounding may make a difference."""
    if args.max_tokens < 1 or args.num_blocks < 1:
        raise ValueError(f"demo: --max-tokens {args.max_tokens}, --num-blocks {args.num_blocks}; at least 1 each")
    if args.requests is not None and args.requests < 1:
        raise ValueError(f"demo: --requests is {args.requests}; it must be at least 1")
    from rich.console import Console

    from minipaged.cli.four_ways import continuous_batching, serial_without_cache, static_batches
    from minipaged.llm import LLM

    started_seconds = time.perf_counter()
    console = Console(stderr=args.json, highlight=False, quiet=args.json and not sys.stderr.isatty())

    def fresh_llm() -> LLM:
        return LLM(args.model, num_blocks=args.num_blocks, block_size=BLOCK_SIZE)

    llm = fresh_llm()
    tasks = _tasks(llm, args.max_tokens, args.requests, args.seed, console)
    _print_opening(console, llm, tasks, args.num_blocks)
    live, texts = _serve(console, llm, tasks)
    _print_served(console, live, tasks)
    _print_answers(console, texts)

    total_slots = args.num_blocks * BLOCK_SIZE
    with _Measuring(console, len(tasks)) as measuring:
        no_cache, oracle = serial_without_cache(llm.model, tasks, measuring.way("serial, no cache"))
        scores = [
            no_cache,
            static_batches("serial, cache", llm.model, tasks, 1, total_slots, measuring.way("serial, cache")),
            static_batches(
                "static batches", llm.model, tasks, len(tasks), total_slots, measuring.way("static batches")
            ),
            continuous_batching(fresh_llm(), tasks, measuring.way("continuous, paged")),
        ]
    agreements = [Agreement.of(oracle, score.answers) for score in scores[1:]]
    agreements.append(Agreement.of(oracle, [answer for _, answer, _ in texts]))
    _print_scoreboard(console, scores, agreements, total_slots, args.max_tokens)
    console.print(f"[dim]The whole demo took {time.perf_counter() - started_seconds:.0f} s.[/]")
    if args.json:
        print(json.dumps(_figures(llm, tasks, live, scores, agreements), ensure_ascii=False, indent=2))
    return int(any(agreement.different for agreement in agreements))


def _tasks(llm: LLM, max_tokens: int, num_requests: int | None, seed: int, console: Console) -> list[Task]:
    """The prompts as token ids, in their order of arrival; those that could never fit are left out, and named."""
    from minipaged.cli.four_ways import Task
    from minipaged.sampling_params import SamplingParams

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
            f"demo: even the shortest request needs {shortest} token slots; there are {limit}. "
            "Give more --num-blocks or fewer --max-tokens"
        )
    if too_long:
        console.print(f"[yellow]Left out: {len(too_long)} prompts that need more than {limit} token slots.[/]")
    random.Random(seed).shuffle(tasks)
    return tasks


def _serve(console: Console, llm: LLM, tasks: list[Task]) -> tuple[StepMeter, list[tuple[Task, tuple[int, ...], str]]]:
    """Requests arrive over time and are served together.

    Returns:
        What the steps did, and for each task its answer as token ids and as text.
    """
    from minipaged.cli.demo_view import DemoView
    from minipaged.cli.four_ways import StepMeter
    from minipaged.llm import Stream

    assert llm.tokenizer is not None
    decode = llm.tokenizer.decode
    streams: list[Stream] = []

    def num_generated() -> int:
        return sum(len(stream.request.sequences[0].draws) for stream in streams)

    def text_so_far(sequence: Sequence) -> str:
        return decode(sequence.output_token_ids).rstrip("\ufffd")  # at its end there may be half a character

    meter = StepMeter()
    with DemoView(console, len(tasks), BLOCK_SIZE, num_generated) as view:
        llm.engine.listeners += [meter, view]
        step = 0
        while len(streams) < len(tasks) or llm.engine.has_work:
            while len(streams) < len(tasks) and _arrival_step(len(streams)) <= step:
                task = tasks[len(streams)]
                stream = llm.stream(list(task.token_ids), task.params)
                sequence = stream.request.sequences[0]
                streams.append(stream)
                view.arrive(sequence.id, task.title, partial(text_so_far, sequence))
            llm.step()
            step += 1
        llm.engine.listeners.clear()
    return meter, [
        (task, tuple(stream.request.sequences[0].output_token_ids), "".join(map(str, stream)))
        for task, stream in zip(tasks, streams, strict=True)
    ]


def _arrival_step(number: int) -> int:
    """The step at which a request comes: some at once, then one every few steps."""
    return max(0, number - NUM_AT_START + 1) * STEPS_BETWEEN_ARRIVALS


class _Measuring:
    """Says which of the four ways is being measured, and how far it is."""

    def __init__(self, console: Console, num_tasks: int) -> None:
        self._console = console
        self._num_tasks = num_tasks
        self._number = 0
        self._status = console.status("") if console.is_terminal and not console.is_dumb_terminal else None

    def __enter__(self) -> _Measuring:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._status is not None:
            self._status.stop()

    def way(self, name: str) -> Any:
        """Begins the next way; returns what is to be told how many requests are answered."""
        self._number += 1
        what = f"measuring {self._number} of 4: {name}"
        if self._status is None:
            self._console.print(what)
            return lambda num_done: None

        def tick(num_done: int) -> None:
            assert self._status is not None
            self._status.update(f"{what}, {num_done}/{self._num_tasks}")

        tick(0)
        return tick


# Printing -------------------------------------------------------------------------------------------------------------


def _print_opening(console: Console, llm: LLM, tasks: list[Task], num_blocks: int) -> None:
    lengths = [len(task.token_ids) for task in tasks]
    needed = sum(-(-task.max_slots // BLOCK_SIZE) for task in tasks)
    console.print(f"[dim]{llm.description}[/]")
    _print_prose(
        console,
        f"{len(tasks)} prompts of {min(lengths)} to {max(lengths)} tokens arrive over time. Together they may come to "
        f"need {needed} blocks of {BLOCK_SIZE} token slots; the pool has {num_blocks}.",
    )
    console.print()


def _print_served(console: Console, meter: StepMeter, tasks: list[Task]) -> None:
    preempted = (
        f"{meter.num_preemptions} times a request gave its blocks to an older one and was resumed later, for which "
        f"{meter.num_recomputed} tokens were computed again"
        if meter.num_preemptions
        else "no request had to give its blocks up"
    )
    _print_prose(
        console,
        f"All {len(tasks)} answered in {meter.steps} steps, {meter.mean_batch:.1f} at a time on average. Up to "
        f"{meter.peak_waiting} waited for blocks; {preempted}.",
    )


def _print_answers(console: Console, texts: list[tuple[Task, tuple[int, ...], str]]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    by_title = {task.title: (task, token_ids, text) for task, token_ids, text in texts}
    shown = [by_title[title] for title in SHOWN_TITLES if title in by_title] or texts[:2]
    for task, token_ids, text in shown:
        cut = " …" if len(token_ids) == task.params.max_tokens else ""
        console.print()
        console.print(Text(task.title, "bold cyan"))
        console.print(Padding(Text(text.strip() + cut), (0, 0, 0, 2)), width=min(console.width, WIDEST_TEXT_CELLS))
    console.print()


def _print_scoreboard(
    console: Console, scores: list[Score], agreements: list[Agreement], total_slots: int, max_tokens: int
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    wide = console.width >= 84
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, show_edge=False, title="The same work, four ways", title_justify="left"
    )
    table.add_column("", no_wrap=True)
    columns = ["tok/s", "held", "live", "in use", "steps", "s"]
    if wide:
        columns = ["tokens/s", "slots held", "slots live", "in use", "steps", "computed", "seconds"]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for score in scores:
        memory = ["–", "–", "–"]
        if score.utilisation is not None:
            mean_held, mean_live = score.held_slots / score.steps, score.live_slots / score.steps
            memory = [f"{mean_held:.0f}", f"{mean_live:.0f}", f"{score.utilisation:.0%}"]
        computed = [f"{score.num_computed:,}"] if wide else []
        cells = [f"{score.tokens_per_second:.0f}", *memory, f"{score.steps}", *computed, f"{score.seconds:.1f}"]
        table.add_row(score.name, *cells, style="bold" if score is scores[-1] else "")
    console.print(table)
    console.print()
    for paragraph in _explanation(scores, total_slots, max_tokens):
        _print_prose(console, paragraph)
    _print_prose(console, _verdict(scores, agreements))


def _explanation(scores: list[Score], total_slots: int, max_tokens: int) -> list[str]:
    """What the figures mean, from the figures."""
    no_cache, cached, static, paged = scores
    assert static.utilisation is not None and paged.utilisation is not None
    computed_without, computed_with = (score.num_computed / score.num_generated for score in (no_cache, cached))
    speed = paged.tokens_per_second / static.tokens_per_second
    return [
        "All requests are there from the start. Held: token slots (room for one token's K and V) that are reserved in "
        "a step, on average. Live: those of them whose token is still needed. In use: live ÷ held.",
        f"Without a cache, {computed_without:.0f} tokens go through the model for every one that is written; with one, "
        f"{computed_with:.1f}.",
        f"A contiguous cache must reserve room for prompt + {max_tokens} tokens beforehand, and a static batch waits "
        f"for its slowest member: {static.utilisation:.0%} of what it held was in use. The paged cache takes "
        f"{BLOCK_SIZE} slots at a time, when they are needed: {paged.utilisation:.0%}. So the same {total_slots} slots "
        f"kept {paged.mean_batch:.1f} answers going at a time instead of {static.mean_batch:.1f}, in {paged.steps} "
        f"steps instead of {static.steps}"
        + (
            f", and {speed:.1f} times as many tokens were written in a second."
            if speed > 1
            else f". But a step costs more here: {speed:.2f} times as many tokens were written in a second."
        ),
    ]


def _verdict(scores: list[Score], agreements: list[Agreement]) -> str:
    num_answers = len(scores[0].answers)
    num_different = max(agreement.different for agreement in agreements)
    num_near_ties = max(agreement.near_ties for agreement in agreements)
    if num_different:
        return f"[red]{num_different} of {num_answers} answers differ between the ways. This should never happen.[/]"
    if num_near_ties:
        return (
            f"The answers are the same in all four ways, but for {num_near_ties} of {num_answers}: these parted where "
            f"the two best logits were closer than {NEAR_TIE}, so that rounding decided."
        )
    return f"All four ways gave the same {num_answers} answers, token for token."


def _print_prose(console: Console, text: str) -> None:
    console.print(text, width=min(console.width, WIDEST_TEXT_CELLS))


def _figures(
    llm: LLM, tasks: list[Task], live: StepMeter, scores: list[Score], agreements: list[Agreement]
) -> dict[str, Any]:
    """The object that --json prints."""
    return {
        "model": llm.description,
        "requests": len(tasks),
        "prompt_tokens": sum(len(task.token_ids) for task in tasks),
        "num_blocks": llm.kv_cache.num_blocks,
        "block_size": BLOCK_SIZE,
        "arriving_over_time": {
            "steps": live.steps,
            "preemptions": live.num_preemptions,
            "recomputed_tokens": live.num_recomputed,
            "peak_waiting": live.peak_waiting,
            "peak_held_slots": live.peak_held_slots,
            "utilisation": live.live_slots / live.held_slots,
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
