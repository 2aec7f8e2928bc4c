"""Lesson 4, played: `python -m lessons.lesson04_fragmentation`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from lessons.lesson04_fragmentation import LESSON
from lessons.lesson04_fragmentation import experiment as measured
from lessons.lesson04_fragmentation.experiment import measure
from lessons.lesson04_fragmentation.figures import MAXIMUM, Figures
from lessons.lesson04_fragmentation.recorded_requests import RecordedRequest, like_sharegpt, mean, read_requests
from lessons.lesson04_fragmentation.service import Service, final_slots
from lessons.lesson04_fragmentation.slot_map import capital, describe, legend, slot_map
from lessons.runner.stage import Stage, run
from minipaged.memory.contiguous.space import Space
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme

MAP_STEP = 440  # of the picture: late enough for some answers to have ended
BAR_CELLS = 40


def play(stage: Stage) -> Figures:
    """Both acts."""
    trace = getattr(stage.options, "trace", None)
    scale = measured.SMALL if stage.small else measured.FULL
    count = scale.num_requests
    traffic = read_requests(Path(trace), count, measured.CONTEXT) if trace else like_sharegpt(count)
    theme = stage.theme

    stage.act(1, "reserve the maximum")
    _say_hole(stage, theme)
    maximum, short = measured.MAX_NEW_TOKENS, measured.SHORT_ANSWER
    lost = stage.predict(
        "slots lost to one short answer", maximum - short.answer, "slots",
        hint=f"The context is {measured.CONTEXT}, max_new_tokens {maximum}. A prompt of {short.prompt} tokens gets an "
             f"answer of {short.answer}. How many of the slots reserved for it does it never use? The last token of an "
             "answer is never fed back, so neither the maximum nor the answer needs a slot for it.",
    )  # fmt: skip
    prompt, answer = mean(traffic, lambda r: r.prompt), mean(traffic, lambda r: min(r.answer, maximum))
    utilisation = stage.predict(
        "utilisation, prompt + maximum reserved", 100 * measured.predicted_utilisation(traffic), "%",
        hint=f"Now {len(traffic)} recorded requests: prompts of {prompt:.0f} tokens in the mean, answers of "
             f"{answer:.0f}, each asking for at most {maximum}. Of the slots held, what part holds a token, over the "
             "whole run? A prompt is there from the start; an answer comes token by token.",
    )  # fmt: skip

    buddy = stage.mine.module(LESSON).Buddy
    figures = measure(scale, traffic, buddy)
    stage.act(2, "the same requests on six memories")
    _show_lost(stage, figures)
    _show_shares(stage, figures, len(traffic), scale.pool_slots)
    _show_sweep(stage, theme, figures)
    _show_paper(stage, figures)
    stage.picture(_maps(theme, traffic, buddy), f"slots in step {MAP_STEP}")
    stage.score(lost, next(row.lost for row in figures.lost if row.memory == MAXIMUM))
    stage.score(utilisation, 100 * figures.of(MAXIMUM).utilisation)
    return figures


def _say_hole(stage: Stage, theme: Theme) -> None:
    service, refusal = measured.until_no_hole_fits()
    stage.say(
        f"{service.memory.total_slots} token slots. Each request gets one contiguous region, for its prompt and the "
        f"longest answer that it may get, {measured.MAX_NEW_TOKENS} tokens. Three short answers have ended; G waits."
    )
    stage.picture(Picture([*slot_map(f"Step {service.num_steps}", service, theme), legend(theme)]), "the hole")
    memory = service.memory
    stage.say(
        f"[bold]{describe(refusal)}.[/] What is free would do {refusal.free / refusal.needed:.1f} times over, but not "
        f"in one piece. And of the {memory.held_slots} slots that are held, {memory.live_slots} hold a token."
    )


def _show_lost(stage: Stage, figures: Figures) -> None:
    short, hole = measured.SHORT_ANSWER, figures.hole
    stage.table(
        f"One short answer: prompt {short.prompt}, answer {short.answer} (slots)",
        ["memory", "held", "filled at its end", "lost"],
        [(row.memory, row.held, row.filled, row.lost) for row in figures.lost],
    )
    stage.say(
        f"And {capital(len(measured.HOLE_REQUESTS) - 1)}, for which no hole was long enough, waited "
        f"{hole.waited_steps} steps in all; on the paged memory it waits {hole.waited_steps_paged}."
    )


def _show_shares(stage: Stage, figures: Figures, count: int, num_slots: int) -> None:
    stage.table(
        "Where the slots were while somebody waited (%)",
        ["memory", "live", "reserved", "internal", "external", "too few", "utilisation"],
        [
            (row.memory, *(_percent(x) for x in (row.live, row.reserved, row.internal, row.external, row.short)),
             _percent(row.utilisation))
            for row in figures.shares
        ],
    )  # fmt: skip
    stage.say(
        f"{count} requests, a pool of {num_slots} slots. Held slots are live, reserved (the request "
        "fills them later) or internal (it never does). Free slots are external (enough in sum for the request that "
        "waits, but no hole is long enough) or too few. Utilisation is live / held."
    )
    stage.table(
        "What it means for the requests",
        ["memory", "running at once", "steps in all", "preemptions", "slots copied"],
        [
            (row.memory, f"{row.mean_running:.1f}", f"{row.steps:,}", f"{row.preemptions:,}", f"{row.copied:,}")
            for row in figures.shares
        ],
    )


def _show_sweep(stage: Stage, theme: Theme, figures: Figures) -> None:
    title = "Utilisation of prompt + maximum, by how far the maximum lies from the real answer"
    lines = [Text(title, style="italic"), Text(f"{'':14}long answers{'':{BAR_CELLS - 4}}short answers")]
    for row in figures.sweep:
        label = "whole context" if row.factor is None else f"{row.factor:g} times"
        lines.append(_bar(theme, label, row.long_answers, row.short_answers))
    lines.append(_bar(theme, "paged", *figures.sweep_paged))
    stage.picture(Picture(lines), "utilisation")


def _bar(theme: Theme, label: str, long: float, short: float) -> Text:
    filled = round(long * BAR_CELLS)
    style = theme.role("title" if label == "paged" else "plain")
    rest = (theme.glyphs.bar_rest * (BAR_CELLS - filled), theme.role("quiet"))
    return Text.assemble(f"{label:14}", (theme.glyphs.bar * filled, theme.role("decode")), rest,
                         f" {long:4.0%}{short:12.0%}", style=style)  # fmt: skip


def _show_paper(stage: Stage, figures: Figures) -> None:
    stage.table(
        "Live / all slots, as the paper counts (%)",
        ["reserved", "ours", "the paper's"],
        [(row.memory, f"{row.ours:.1f}", f"{row.paper:.1f}") for row in figures.paper],
    )


def _maps(theme: Theme, traffic: list[RecordedRequest], buddy: Callable[[int], Space]) -> Picture:
    """Each memory's pool in the same step, one below the other."""
    picture = Picture([legend(theme)])
    final = final_slots(traffic, measured.MAX_NEW_TOKENS)
    memories = measured.memories(measured.DRAWN_POOL_SLOTS, final, buddy)
    for name, memory in memories.items():
        service = Service(memory, traffic, measured.MAX_NEW_TOKENS, measured.CONTEXT)
        service.open_step()
        while service.num_steps < MAP_STEP:
            service.close_step()
            service.open_step()
        picture += Picture([Text(), *slot_map(name, service, theme)])
    return picture


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The lesson's own option."""
    parser.add_argument(
        "--trace", metavar="FILE", help="take the lengths from an Azure CSV file or a Mooncake .jsonl file"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Play the lesson; returns the exit status."""
    return run(LESSON, play, argv, add_arguments=add_arguments)


if __name__ == "__main__":
    sys.exit(main())
