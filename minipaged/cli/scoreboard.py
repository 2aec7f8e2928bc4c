"""The scoreboard of the four ways: a table, and in words what its figures mean.

Everything is taken from the scores, the words too: where a figure turns out otherwise, so does the sentence. Knows a
console and nothing of how the scores came about.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from minipaged.cli.agreement import NEAR_TIE, Agreement
from minipaged.cli.four_ways import Score

WIDEST_TEXT_CELLS = 100  # prose wider than this is hard to read
_WIDE_TABLE_CELLS = 80


def print_scoreboard(
    console: Console,
    scores: Sequence[Score],
    agreements: Sequence[Agreement],
    total_slots: int,
    block_size: int,
    num_threads: int,
) -> None:
    """Prints the table and its explanation.

    Args:
        console: where to.
        scores: of the four ways, in their order; the last is the paged one.
        agreements: of the others' answers with those of the first.
        total_slots: token slots that the two that batch were given.
        block_size: token slots in a block of the last.
        num_threads: threads that each way had.
    """
    console.print(_table(scores, wide=console.width >= _WIDE_TABLE_CELLS))
    console.print()
    threads = "one thread" if num_threads == 1 else f"{num_threads} threads"
    note = (
        f"All requests are there from the start, and each way has {threads}. Held: token slots (each has room for one "
        "token's K and V) reserved in a step, on average; live: those of them whose token is still needed."
    )
    print_prose(console, f"[dim]{note}[/]")
    console.print()
    for paragraph in _explanation(*scores, total_slots=total_slots, block_size=block_size):
        print_prose(console, paragraph)
        console.print()
    print_prose(console, _verdict(len(scores[0].answers), agreements))


def print_prose(console: Console, text: str) -> None:
    """Prints a paragraph, no wider than can be read with pleasure."""
    console.print(text, width=min(console.width, WIDEST_TEXT_CELLS))


def _table(scores: Sequence[Score], wide: bool) -> Table:
    title = "The same work, four ways"
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False, title=title, title_justify="left"
    )
    table.add_column("", no_wrap=True)
    columns = ["tok/s", "held", "live", "used", "steps", "s"]
    if wide:
        columns = ["tokens/s", "held", "live", "in use", "steps", "computed", "seconds"]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for score in scores:
        memory = ["–", "–", "–"]
        if score.utilisation is not None:
            mean_held, mean_live = score.held_slots / score.steps, score.live_slots / score.steps
            memory = [f"{mean_held:.0f}", f"{mean_live:.0f}", f"{score.utilisation:.0%}"]
        computed = [f"{score.num_computed}"] if wide else []
        cells = [f"{score.tokens_per_second:.0f}", *memory, f"{score.steps}", *computed, f"{score.seconds:.1f}"]
        table.add_row(score.name, *cells, style="bold" if score is scores[-1] else "")
    return table


def _explanation(
    no_cache: Score, cached: Score, static: Score, paged: Score, *, total_slots: int, block_size: int
) -> list[str]:
    computed_without, computed_with = (score.num_computed / score.num_generated for score in (no_cache, cached))
    speed = paged.tokens_per_second / static.tokens_per_second
    if speed > 1:
        outcome = f", and {speed:.1f} times as many tokens were written in a second."
    else:
        outcome = (
            ". Here each step takes longer by more than that, though: "
            f"{speed:.2f} times as many tokens were written in a second."
        )
    return [
        f"Without a cache, {computed_without:.0f} tokens went through the model for each one that was written; with "
        f"one, {computed_with:.1f}.",
        "A contiguous cache must reserve room for the longest answer that may come, and a static batch waits for its "
        f"slowest member: {static.utilisation or 0:.0%} of what it held was in use. The paged cache takes "
        f"{block_size} slots at a time, when they are needed: {paged.utilisation or 0:.0%}. So the same {total_slots} "
        f"slots kept {paged.mean_batch:.1f} answers going at a time instead of {static.mean_batch:.1f}; the work took "
        f"{paged.steps} steps instead of {static.steps}{outcome}",
    ]


def _verdict(num_answers: int, agreements: Sequence[Agreement]) -> str:
    num_different = max(agreement.different for agreement in agreements)
    num_near_ties = max(agreement.near_ties for agreement in agreements)
    if num_different:
        return f"[red]{num_different} of {num_answers} answers differ between the ways. This should never happen.[/]"
    if num_near_ties:
        return (
            f"The four ways gave the same {num_answers} answers, but for {num_near_ties} that parted where the two "
            f"best logits were closer than {NEAR_TIE}, so that rounding decided."
        )
    return f"All four ways gave the same {num_answers} answers, token for token."
