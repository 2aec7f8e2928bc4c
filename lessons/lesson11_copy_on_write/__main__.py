"""Lesson 11, played: a cache for each answer; answers that overwrite each other; and copies made before a write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.text import Text

from lessons.lesson11_copy_on_write import LESSON
from lessons.lesson11_copy_on_write.experiment import (
    BLOCK_SIZE,
    COUNTED_ANSWERS,
    COUNTED_BLOCK_SIZE,
    COUNTED_TOKENS,
    MEAN_LENGTHS,
    NUM_ANSWERS,
    NUM_REQUESTS,
    NUM_TOKENS,
    ROOMY_BLOCKS,
    TIGHT_BLOCKS,
    Figures,
    Overwritten,
    Served,
    blocks_used,
    count_savings,
    naive,
    over_traffic,
    serve,
    write_without_copying,
)
from lessons.lesson11_copy_on_write.mistakes import never_copied
from lessons.runner.stage import Stage, run
from minipaged.parts import Parts
from minipaged.trace import Trace
from minipaged.viz.block_map import block_map
from minipaged.viz.changes import what_changed
from minipaged.viz.history import History
from minipaged.viz.picture import Picture
from minipaged.viz.sequence_view import block_tables, queue
from minipaged.viz.theme import Theme, name

NUM_PROMPT = 18  # tokens of PROMPT
PARTED = 1  # the step in which each answer writes its first token
# What the PagedAttention paper reports for n = 2, 4, 6, in per cent; it gives the ends of a range for ShareGPT.
REPORTED = {"Alpaca": "6.1 / 8.5 / 9.8 %", "ShareGPT": "16.2 to 30.5 %"}


def play(stage: Stage) -> Figures:
    """Both acts."""
    parts = stage.mine.parts()
    width = min(stage.console.width, 100)

    stage.act(1, "a cache for each answer")
    stage.say(
        f"One prompt of {NUM_PROMPT} tokens, {NUM_ANSWERS} answers of {NUM_TOKENS} tokens, {TIGHT_BLOCKS} blocks of "
        f"{BLOCK_SIZE}. The prompt is computed once; then its whole cache is copied for each further answer:"
    )
    tight, trace = serve(naive(Parts()), TIGHT_BLOCKS, stage.device)
    stage.picture(_picture(stage.theme, trace, width, with_queue=True))
    stage.say(
        f"{tight.copies} blocks were copied. Only {tight.most_running} of {NUM_ANSWERS} answers ever ran together: one "
        f"was preempted before it had begun, and all took {tight.steps} steps. Yet the blocks hold the same "
        f"{NUM_PROMPT} tokens over and over."
    )
    overwritten = write_without_copying(never_copied.KVManager)
    stage.say(
        "So let the answers share the blocks, and do no more? Two answers, both with room in their last block for the "
        "token that they drew. In a simulated cache, whose slots hold tokens:"
    )
    stage.table(
        "shared, and never copied",
        ["answer", "drew", "reads back", "goes on with", "should go on with"],
        [_overwritten_row(overwritten, i) for i in range(2)],
        highlight="",
    )
    stage.say(
        "Both wrote in the same slot. The last one won, and [bold]the other goes on from a token it never drew[/]."
    )
    used, unshared = blocks_used(NUM_PROMPT, NUM_TOKENS - 1, NUM_ANSWERS, BLOCK_SIZE)
    in_cache = NUM_PROMPT + NUM_TOKENS - 1
    guess_blocks = stage.predict(
        "blocks saved at the end",
        unshared - used,
        "blocks",
        hint=f"Now answers share blocks until they write. At the end each has {in_cache} tokens in the cache "
        f"({NUM_PROMPT} + {NUM_TOKENS} - 1: the last is never fed back), blocks of {BLOCK_SIZE}. Which blocks can all "
        f"{NUM_ANSWERS} have in common, and how many are saved against {unshared} without sharing?",
    )
    guess_copies = stage.predict(
        "blocks copied",
        NUM_ANSWERS - 1,
        "blocks",
        hint=f"And how many blocks are copied, for {NUM_ANSWERS} answers? The last to write is alone.",
    )

    stage.act(2, "share, and copy before write")
    shared, trace = serve(parts, TIGHT_BLOCKS, stage.device)
    stage.say(f"The same {TIGHT_BLOCKS} blocks, in the step in which the answers part:")
    stage.picture(_picture(stage.theme, trace, width), "answers part")
    stage.say(
        f"Four full blocks are shared by all. The fifth holds the prompt's last {NUM_PROMPT % BLOCK_SIZE} tokens and "
        "has room for more: whoever writes on it while others hold it gets a copy first. The last one finds itself "
        "alone, and writes in the original."
    )
    copying, _ = serve(naive(Parts()), ROOMY_BLOCKS, stage.device)
    stage.table(
        f"{NUM_ANSWERS} answers to one prompt",
        ["", "blocks", "blocks copied", "KB copied", "blocks at the end", "steps", "together"],
        [
            _row("copy everything", TIGHT_BLOCKS, tight),
            _row("copy everything, roomy", ROOMY_BLOCKS, copying),
            _row("copy on write", TIGHT_BLOCKS, shared),
        ],
    )
    for i, text in enumerate(shared.texts):
        first = text.strip().split("\n", 1)[0].rstrip("\ufffd")  # half a character at the end
        stage.console.print(Text.assemble((f"{name(i)}  ", stage.theme.owner(i)), first))
    stage.console.print()
    same = shared.answers == tight.answers == copying.answers
    stage.say(
        "Token for token what they wrote with a cache each."
        if same
        else "[red]Not what they wrote with a cache each.[/]"
    )
    savings = count_savings(parts, stage.small)
    stage.table(
        f"What sharing saves when each answer has {COUNTED_TOKENS} tokens; blocks of {COUNTED_BLOCK_SIZE}",
        ["prompt, tokens", "n", "unshared", "used, by formula", "used, counted", "saved", "copied"],
        [
            (
                saving.num_prompt,
                saving.num_answers,
                saving.unshared,
                saving.by_formula,
                saving.used,
                f"{saving.share:.1%}",
                saving.copies,
            )
            for saving in savings
        ],
        highlight="",
    )
    num_requests = NUM_REQUESTS // 10 if stage.small else NUM_REQUESTS
    traffic = tuple(over_traffic(data_set, num_requests) for data_set in MEAN_LENGTHS)
    stage.table(
        f"The formula over whole requests with the mean lengths of two data sets, n = {_slashed(COUNTED_ANSWERS)}",
        ["lengths of", "prompt, mean", "answer, mean", "saved, ours", "reported by the paper"],
        [
            (
                row.name,
                row.mean_prompt,
                row.mean_answer,
                _slashed(f"{share:.1%}".rstrip("%") for share in row.shares) + " %",
                REPORTED[row.name],
            )
            for row in traffic
        ],
        highlight="",
    )
    saved = shared.entries_at_end - shared.blocks_at_end
    stage.score(guess_blocks, saved)
    stage.score(guess_copies, shared.copies)
    return Figures(
        copying_tight=tight,
        copying=copying,
        shared=shared,
        overwritten=overwritten,
        savings=savings,
        traffic=traffic,
        blocks_saved=saved,
        same_answers=same,
    )


def _picture(theme: Theme, trace: Trace, width: int, *, with_queue: bool = False) -> Picture:
    """Memory in the step in which each answer writes its first token."""
    history = History(trace)
    moment, changes = history.moment(PARTED), history.facts(PARTED).changes
    picture = block_map(moment, changes, theme, width, 6)
    picture += block_tables(moment, changes, theme, width, NUM_ANSWERS + 1)
    if with_queue:
        return picture + queue(moment, theme, width, 3)
    return picture + what_changed(moment, changes, theme, width, 8)


def _overwritten_row(overwritten: Overwritten, i: int) -> tuple[object, ...]:
    answer, right = overwritten.answers[i], overwritten.right[i]
    return (
        name(i),
        overwritten.drawn[i],
        overwritten.read_back[i],
        " ".join(map(str, answer[1:4])),
        " ".join(map(str, right[1:4])),
    )


def _row(label: str, num_blocks: int, served: Served) -> tuple[object, ...]:
    at_end = served.blocks_at_end or "-"
    return (
        label,
        num_blocks,
        served.copies,
        f"{served.copied_bytes / 1024:,.0f}",
        at_end,
        served.steps,
        served.most_running,
    )


def _slashed(items: Iterable[object]) -> str:
    return " / ".join(map(str, items))


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
