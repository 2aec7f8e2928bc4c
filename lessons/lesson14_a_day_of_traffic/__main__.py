"""Lesson 14, played: `python -m lessons.lesson14_a_day_of_traffic`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lessons.lesson14_a_day_of_traffic import LESSON
from lessons.lesson14_a_day_of_traffic import experiment as measured
from lessons.lesson14_a_day_of_traffic.demand import Demand, alpaca, recorded, sharegpt
from lessons.lesson14_a_day_of_traffic.experiment import BLOCK_SIZE, COST_MODEL, Scale, measure
from lessons.lesson14_a_day_of_traffic.figures import Figures, OrderRow, Traffic
from lessons.lesson14_a_day_of_traffic.pictures import latency_picture, visits_picture
from lessons.lesson14_a_day_of_traffic.reckoning import Reckoned, reckon
from lessons.lesson14_a_day_of_traffic.request_log import Visit
from lessons.runner.stage import Prediction, Stage, run
from minipaged.cli.latency_chart import latency_chart
from minipaged.serving.policy import PAGED, POLICIES, Policy, Room

if TYPE_CHECKING:  # minipaged.parts imports torch
    from minipaged.memory.kv_manager import KVManager
    from minipaged.parts import Parts


def play(stage: Stage) -> Figures:
    """Both acts."""
    scale = measured.SMALL if stage.small else measured.FULL
    demands = _demands(getattr(stage.options, "trace", None), scale)
    reckoned = {name: reckon(name, demands[0].lengths, COST_MODEL, BLOCK_SIZE) for name in measured.POLICY_NAMES}
    paged = paged_of(stage.mine.parts()) if stage.mine.answers else PAGED

    stage.act(1, "static batches")
    batch = measured.first_batches(POLICIES["static"])
    _show_batches(stage, batch)
    predictions = _ask(stage, demands[0], reckoned)

    stage.act(2, "the same traffic, five ways to serve it")
    own_name = "yours" if LESSON.number in stage.mine.answers else "patient"
    figures = measure(scale, demands, paged, stage.mine.module(LESSON).order, own_name)
    window = max(visit.ended for visit in batch)
    again = measured.first_batches(paged)
    stage.picture(visits_picture("The same requests, paged", again, window, stage.theme), "paged")
    if stage.small:
        stage.say("(Seconds of traffic only: no queue has the time to grow, so every policy bears more than it could.)")
    for traffic in figures.traffics:
        _show_policies(stage, traffic, figures.limit)
    if getattr(stage.options, "trace", None) is None:
        _show_paper(stage, figures.traffics[0])
    _show_orders(stage, figures)
    for traffic in reversed(figures.traffics):
        stage.picture(latency_picture(traffic, figures.limit, stage.theme), traffic.name)
    if stage.svg:  # a chart of lines says it better than one of letters
        _draw(Path(stage.svg), figures.traffics[0])
    first = figures.traffics[0]
    waste, running, ratio = predictions
    stage.score(waste, 100 * (1 - first.of("reserve-max").live))
    stage.score(running, first.of("paged").running)
    stage.score(ratio, first.times("paged", "reserve-max"))
    return figures


def paged_of(parts: Parts) -> Policy:
    """The engine's own way to serve, put together of somebody's parts."""

    def memory(room: Room) -> KVManager:
        return parts.memory(
            parts.pool(room.num_slots // room.block_size), parts.tree(room.block_size), None,
            share_prefixes=False, table=parts.table,
        )  # fmt: skip

    return Policy(PAGED.name, memory, PAGED.summary, parts.scheduler, watermark=PAGED.watermark)


def _demands(trace: str | None, scale: Scale) -> tuple[Demand, ...]:
    if trace is None:
        return sharegpt(scale.conversation_seconds), alpaca(scale.instruction_seconds)
    return (recorded(Path(trace), scale.trace_requests, COST_MODEL.network.max_positions),)


# Act one -------------------------------------------------------------------------------------------------------------


def _show_batches(stage: Stage, visits: list[Visit]) -> None:
    slots, context = COST_MODEL.network.kv_slots, COST_MODEL.network.max_positions
    stage.say(
        f"A GPU of 40 GB with a model of 13 billion parameters has room for {slots:,} token slots. {context:,} are "
        f"reserved for each request, so {slots // context} run at once, as one batch: nobody comes in until its last "
        f"has ended. Here are {len(visits)} requests, {measured.FIRST_RATE} a second. Each line is one: tokens of its "
        "prompt and its answer, dots while it waits, and a line while it is served."
    )
    window = max(visit.ended for visit in visits)
    stage.picture(visits_picture("Static batches", visits, window, stage.theme), "static batches")
    unlucky = max(visits, key=lambda visit: visit.began - visit.arrival)
    name = chr(ord("A") + visits.index(unlucky))
    inside = sum(visit.began < unlucky.arrival < visit.ended for visit in visits)
    stage.say(
        f"[bold]{name} waited {unlucky.began - unlucky.arrival:.1f} s[/] for the batch before it to end. When it came, "
        f"{inside} of the {slots // context} places were taken, and the others stood empty all that time."
    )


def _ask(stage: Stage, demand: Demand, reckoned: dict[str, Reckoned]) -> tuple[Prediction, Prediction, Prediction]:
    maximum, paged = reckoned["reserve-max"], reckoned["paged"]
    slots, context = COST_MODEL.network.kv_slots, COST_MODEL.network.max_positions
    waste = stage.predict(
        "slots without a token, the maximum reserved", 100 * (1 - maximum.running * maximum.live / slots), "%",
        hint="Now whoever ends makes room at once for the next: continuous batching (lesson 8). Still "
             f"{context:,} of {slots:,} slots are reserved for each. At a random moment of a busy service, a request "
             f"has {maximum.live:.0f} tokens in the mean. What part of all slots holds none?",
    )  # fmt: skip
    running = stage.predict(
        "requests in a step, paged", paged.running, "",
        hint=f"And in blocks of {BLOCK_SIZE}, which are given out as they are needed: how many such requests fit?",
    )  # fmt: skip
    ratio = stage.predict(
        "request rate at equal latency, paged / maximum reserved", paged.rate / maximum.rate, "times",
        hint=f"A step with {maximum.running:.0f} requests takes {1e3 * maximum.step_seconds:.1f} ms, one with "
             f"{paged.running:.0f} takes {1e3 * paged.step_seconds:.1f} ms. Each step gives each of its requests one "
             "token. How many times as many requests can be served in a second?",
    )  # fmt: skip
    return waste, running, ratio


# Act two -------------------------------------------------------------------------------------------------------------


def _show_policies(stage: Stage, traffic: Traffic, limit: float) -> None:
    stage.table(
        f"{traffic.name}, {traffic.mean_prompt:.0f} tokens in and {traffic.mean_answer:.0f} out: requests a second at "
        f"{1e3 * limit:.0f} ms a token",
        ["policy", "reckoned", "measured", "paged / this", "requests in a step"],
        [
            (curve.policy, f"{curve.reckoned:.2f}", f"{curve.rate:.2f}", f"{traffic.times('paged', curve.policy):.1f}",
             f"{curve.running:.1f}")
            for curve in traffic.curves
        ],
    )  # fmt: skip
    stage.table(
        f"{traffic.name}: where the slots were, when too much came (%)",
        ["policy", "live", "reserved", "internal", "external", "free"],
        [
            (curve.policy, *(f"{100 * share:.1f}" for share in
                             (curve.live, curve.reserved, curve.internal, curve.external, curve.free)))
            for curve in traffic.curves
        ],
    )  # fmt: skip


# The paper's figures (arXiv 2309.06180): rates and requests in a step from section 6.2, memory from figure 2.
_PAPER_RATES = (("reserve-oracle", "1.7 to 2.7"), ("reserve-max", "2.7 to 8"), ("static", "up to 22"))
_PAPER_STEPS = (("reserve-oracle", "2.2"), ("reserve-max", "4.3"))
_PAPER_LIVE = (("reserve-max", "20.4"), ("reserve-pow2", "26.8"), ("reserve-oracle", "38.2"), ("paged", "96.3"))


def _show_paper(stage: Stage, traffic: Traffic) -> None:
    paged = traffic.of("paged")
    rows = [(f"rate, paged / {name}", f"{traffic.times('paged', name):.1f}", said) for name, said in _PAPER_RATES]
    rows += [
        (f"in a step, paged / {name}", f"{paged.running / traffic.of(name).running:.1f}", said)
        for name, said in _PAPER_STEPS
    ]
    rows += [(f"live slots, {name} (%)", f"{100 * traffic.of(name).live:.1f}", said) for name, said in _PAPER_LIVE]
    stage.table("Beside the paper's, on conversations", ["", "ours", "the paper's"], rows, highlight="none")


def _show_orders(stage: Stage, figures: Figures) -> None:
    orders = figures.orders

    def cells(row: OrderRow) -> list[str]:
        latencies = (row.p99, row.short_p50, row.short_p99, row.long_p50, row.long_p99, row.urgent_p99, row.patient_p99)
        return [row.order, *(f"{1e3 * value:.0f}" for value in latencies), f"{row.stood_still:.0f}"]

    stage.table(
        f"A rush hour, paged: {orders.num_requests} requests, {orders.rate:.1f} a second (ms a token; seconds)",
        ["order", "all\np99", "short\np50", "short\np99", "long\np50", "long\np99", "urgent\np99", "others\np99",
         "stood\nstill"],
        map(cells, orders.rows),
    )  # fmt: skip
    stage.say(
        f"Short is up to {measured.LONG_FROM} tokens, prompt and answer; half the requests are urgent. The last column "
        "is the longest that anybody got nothing. Requests that were not served to the end: "
        f"{sum(row.unfinished for row in orders.rows)}."
    )


def _draw(path: Path, traffic: Traffic) -> None:
    lines = {curve.policy: [(point.rate, point.normalised) for point in curve.points] for curve in traffic.curves}
    title = f"OPT-13B on 40 GB, {traffic.name}: mean normalised latency"
    path.write_text(latency_chart(lines, title, "seconds a token", top=0.2), encoding="utf-8")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trace", metavar="FILE", help="take the requests from an Azure CSV file or a Mooncake .jsonl file"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Play the lesson; returns the exit status."""
    return run(LESSON, play, argv, add_arguments=_add_arguments)


if __name__ == "__main__":
    sys.exit(main())
