"""Lesson 13, played: three users on reserved regions, then the same three on blocks, step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from lessons.lesson13_two_users import LESSON
from lessons.lesson13_two_users.questions import first_loss, items
from lessons.lesson13_two_users.quiz import Quiz
from lessons.lesson13_two_users.service import (
    BLOCK_SIZE,
    MAX_TOKENS,
    NUM_SLOTS,
    QUESTIONS,
    SECOND_COMES,
    Service,
    on_blocks,
    on_regions,
)
from lessons.lesson13_two_users.story_chart import pool_row, tables, timeline, timeline_legend
from lessons.runner.stage import Stage, run
from minipaged.parts import Parts
from minipaged.viz.block_map import block_map
from minipaged.viz.changes import what_changed
from minipaged.viz.history import History
from minipaged.viz.picture import Picture

SHARED_TOKENS = 6
TYPICAL_TOKENS = 20  # of a sequence in the middle of its answer, without the common beginning


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 13 counts."""

    regions: Service
    blocks: Service
    counts_at_the_end: tuple[int, ...]  # of every block
    cached_at_the_end: int
    quiz_asked: int
    quiz_right: int
    is_right: bool  # the answers are the same on regions and on blocks, with the learner's parts and with ours


def play(stage: Stage) -> Figures:
    """Both acts."""
    parts = stage.mine.parts()
    quiz = Quiz(stage.console, is_on=getattr(stage.options, "quiz", False), asks=stage.asks)
    width = min(stage.console.width, 100)

    stage.act(1, "reserved regions")
    asked = ", ".join(f"“{question.text.strip()}”" for question in QUESTIONS)
    stage.say(
        f"Three users, one sentence each: {asked}. The first comes at once, the second in step {SECOND_COMES}, the "
        f"third when the first has been served, and it wants two answers (C and D). Each allows {MAX_TOKENS} tokens, "
        f"since nobody knows where the sentence will end. Memory has {NUM_SLOTS} token slots; an answer reserves all "
        "that it may come to need."
    )
    regions = on_regions(parts, stage.device)
    stage.console.print(timeline(stage.theme, "reserved regions", regions, regions.steps, width))
    stage.console.print(timeline_legend(stage.theme))
    stage.console.print()
    first = regions.fares[0]
    used = first.num_prompt + len(first.phases) - 1
    reserved = first.num_prompt + MAX_TOKENS - 1
    stage.say(
        f"A reserves {first.num_prompt} + {MAX_TOKENS} - 1 = {reserved} of the {NUM_SLOTS} slots and comes to use "
        f"{used}. Nobody else fits beside it. [bold]The third user waits {regions.fares[2].waited} steps for the first "
        f"answer and {regions.fares[3].waited} for the second.[/]"
    )
    waits = stage.predict(
        "steps spent waiting, with blocks",
        0,
        "steps",
        hint=f"Now the same {NUM_SLOTS} slots are {NUM_SLOTS // BLOCK_SIZE} blocks of {BLOCK_SIZE}, taken when they "
        f"are needed. All prompts begin with the same {SHARED_TOKENS} tokens. When A ends it will have {used} tokens "
        f"in the cache, and B about {used - 12}. With regions, the four answers waited {regions.waits} steps in all.",
    )
    in_use = stage.predict(
        "held slots that hold a token, while two or more run",
        100 * TYPICAL_TOKENS / (TYPICAL_TOKENS + (BLOCK_SIZE - 1) / 2),
        "%",
        hint=f"Each sequence has an empty slot in its last block half of the time, beside some {TYPICAL_TOKENS} tokens "
        "of its own.",
    )

    stage.act(2, "blocks, step by step")
    stage.say(
        f"Blocks of {BLOCK_SIZE} slots are smaller than anybody would choose; here they let {SHARED_TOKENS} common "
        f"tokens fill {SHARED_TOKENS // BLOCK_SIZE} blocks. On each line the pool after the step, two characters for a "
        "block: who holds it (a digit: so many tables), and how full it is. A step in which somebody comes, parts or "
        "goes is told in words, with every table; a raised number is a block's count, if it is above 1."
    )
    blocks, trace = on_blocks(parts, stage.device)
    history = History(trace)
    _tell(stage, quiz, history, width)
    ours, _ = on_blocks(Parts(), stage.device) if stage.mine.answers else (blocks, trace)
    end = history.moment(len(history) - 1)
    counts = tuple(len(block.holders) for block in end.device_blocks)
    cached = sum(not block.holders and block.node is not None for block in end.device_blocks)
    stage.say(
        f"All is done: {sum(counts)} blocks are held, every count is 0, {cached} blocks are cached and "
        f"{len(counts) - cached} free. The books were checked after each of the {blocks.steps} steps."
    )
    for fare in blocks.fares:
        stage.console.print(f"[bold]{fare.name}[/]  {fare.text}", soft_wrap=True)
    stage.console.print()
    stage.table(
        f"The same three users on the same {NUM_SLOTS} slots",
        ["", "steps in all", "waited, all answers", "run at a time, most", "held slots in use"],
        [
            (name, of.steps, of.waits, max(of.num_running), f"{of.utilisation:.1%}")
            for name, of in (("reserved regions", regions), ("blocks", blocks))
        ],
    )
    theme = stage.theme
    shown = _fork(history) + 1  # the answers have just parted: all that there is to see is there
    moment, changes = history.moment(shown), history.facts(shown).changes
    picture = timeline(theme, "reserved regions", regions, regions.steps, width)
    picture += timeline(theme, "blocks", blocks, regions.steps, width)
    picture += Picture([timeline_legend(theme), Text()])
    picture += block_map(moment, changes, theme, width, 8) + tables(theme, moment, changes, width)
    stage.picture(picture, f"three users, and memory after step {moment.record.step}")

    answers = [[fare.text for fare in service.fares] for service in (regions, blocks, ours)]
    is_right = answers[0] == answers[1] == answers[2]
    if stage.mine.answers or not is_right:
        same = "the same answers as ours" if is_right else "[red]other answers than ours[/]"
        stage.say(f"Served by {'your' if stage.mine.answers else 'our'} parts, the three got {same}.")
    quiz.close()
    stage.score(waits, blocks.waits)
    stage.score(in_use, round(100 * blocks.utilisation, 1))
    return Figures(regions, blocks, counts, cached, quiz.num_asked, quiz.num_right, is_right)


def _tell(stage: Stage, quiz: Quiz, history: History, width: int) -> None:
    """Every step: most on one line; those that matter in words, after the quiz has asked what they will bring."""
    theme = stage.theme
    was_told = True
    for index in range(len(history)):
        moment, changes = history.moment(index), history.facts(index).changes
        matters = bool(moment.record.events or moment.record.operations) or index == first_loss(history)
        for item in items(history, index):
            quiz.ask(item.question, item.answer, item.because)
        if matters:
            if not was_told:
                stage.console.print()
            told = what_changed(moment, changes, theme, width, 20)
            told += Picture([Text.assemble(("pool  ", theme.role("quiet")), pool_row(theme, moment))])
            stage.console.print(told + tables(theme, moment, changes, width))
            stage.console.print()
        else:
            stage.console.print(
                Text.assemble((f"step {moment.record.step:3}  ", theme.role("quiet")), pool_row(theme, moment)),
                no_wrap=True,
                overflow="crop",
            )
        was_told = matters


def _fork(history: History) -> int:
    """The step in which answers part."""
    forks = (i for i in range(len(history)) if any(event.kind == "fork" for event in history.moment(i).record.events))
    return next(forks, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The lesson's own options."""
    parser.add_argument("--quiz", action="store_true", help="be asked what each step will bring, and keep score")


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv, add_arguments=add_arguments)


if __name__ == "__main__":
    sys.exit(main())
