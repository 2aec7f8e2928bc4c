"""Serving report: the figures of several services as tables. It knows figures and a console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from minipaged.serving.figures import Latencies, ServingFigures, Spread


@dataclass(frozen=True, slots=True)
class Run:
    """One service's figures, and what it was.

    Args:
        name: the policy, and the order where that is not first come first served.
        rate: requests a second that came.
        figures: what came of it.
    """

    name: str
    rate: float
    figures: ServingFigures


def print_report(console: Console, runs: Sequence[Run], *, by_length: bool) -> None:
    """Print three tables: what the users saw, what was done, where the memory was.

    Args:
        console: where to.
        runs: in the order in which they are to stand.
        by_length: a fourth table tells short requests from long ones.
    """
    title = "Latency: seconds to the first token, ms to the next, ms a token in all"
    table = _table()
    for kind in ("first", "next", "all"):
        for share in ("p50", "p90", "p99"):
            _add_column(table, f"{kind}\n{share}")
    for run in runs:
        seen = run.figures.all
        cells = [*_cells(seen.first_token, 1), *_cells(seen.between_tokens, 1e3), *_cells(seen.normalised, 1e3)]
        table.add_row(run.name, f"{run.rate:.3g}", *cells)
    _print(console, title, table)

    title = "Work: per second; sequences in a step; share of the prompts found in the cache"
    table = _table()
    for heading in ("req/s", "tok/s", "batch", "found", "preempted", "computed\nagain", "blocks\nswapped", "refused"):
        _add_column(table, heading)
    for run in runs:
        figures = run.figures
        table.add_row(
            run.name, f"{run.rate:.3g}", f"{figures.requests_per_second:.3g}",
            f"{figures.output_tokens_per_second:.0f}", f"{figures.batch_size:.1f}", f"{figures.hit_rate:.1%}",
            f"{figures.preemptions}", f"{figures.recomputed_tokens}", f"{figures.swapped_blocks}",
            f"{figures.num_refused}",
        )  # fmt: skip
    _print(console, title, table)

    title = "Memory: shares of the pool's slots, over the time in which there was work"
    table = _table()
    for heading in ("live", "reserved", "internal", "external", "free", "live of held"):
        _add_column(table, heading)
    for run in runs:
        memory = run.figures.memory
        shares = (memory.live, memory.reserved, memory.internal, memory.external, memory.free, memory.utilisation)
        table.add_row(run.name, f"{run.rate:.3g}", *(f"{share:.1%}" for share in shares))
    _print(console, title, table)
    if by_length:
        _print_by_length(console, runs)


def _print_by_length(console: Console, runs: Sequence[Run]) -> None:
    title = f"Short and long requests; long is above {runs[0].figures.long_from} tokens, prompt and answer"
    table = _table()
    for kind in ("short", "long"):
        for heading in ("first\np50", "first\np99", "all\np50", "all\np99", "longest\nwait"):
            _add_column(table, f"{kind}\n{heading}")
    columns: tuple[Callable[[Latencies], str], ...] = (
        lambda seen: _number(seen.first_token.p50),
        lambda seen: _number(seen.first_token.p99),
        lambda seen: _number(1e3 * seen.normalised.p50),
        lambda seen: _number(1e3 * seen.normalised.p99),
        lambda seen: _number(seen.waiting.longest),
    )
    for run in runs:
        cells = [column(seen) for seen in (run.figures.short, run.figures.long) for column in columns]
        table.add_row(run.name, f"{run.rate:.3g}", *cells)
    _print(console, title, table)


def _table() -> Table:
    """Narrow enough for 80 columns: one space between two columns, and no lines."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    _add_column(table, "rate")
    return table


def _add_column(table: Table, heading: str) -> None:
    table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")


def _print(console: Console, title: str, table: Table) -> None:
    console.print(f"[italic]{title}[/]", highlight=False)
    console.print(table)
    console.print()


def _cells(spread: Spread, scale: float) -> list[str]:
    return [_number(scale * value) for value in (spread.p50, spread.p90, spread.p99)]


def _number(value: float) -> str:
    """Three figures, without powers of ten."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
