"""Lesson 13: the story is what the lesson says it is on any machine, and the quiz knows its answers from the record."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from lessons.lesson13_two_users import LESSON
from lessons.lesson13_two_users.__main__ import play
from lessons.lesson13_two_users.questions import Item, first_loss, items
from lessons.lesson13_two_users.quiz import Quiz
from lessons.lesson13_two_users.service import BLOCK_SIZE, NUM_SLOTS, Service, on_blocks, on_regions
from lessons.lesson13_two_users.story_chart import pool_row, tables, timeline
from lessons.runner.lesson import find
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.parts import Parts
from minipaged.plan import CopyBlock
from minipaged.viz.history import History
from minipaged.viz.theme import Theme


@pytest.fixture(scope="module")
def told() -> tuple[Service, History]:
    service, trace = on_blocks(Parts(), "cpu")
    return service, History(trace)


@pytest.fixture(scope="module")
def regions() -> Service:
    return on_regions(Parts(), "cpu")


# The story -----------------------------------------------------------------------------------------------------------


def test_nobody_waits_on_blocks(told: tuple[Service, History]) -> None:
    service, _ = told
    assert service.waits == 0 and [fare.waited for fare in service.fares] == [0, 0, 0, 0]
    assert service.utilisation >= 0.95
    assert service.held_at_the_end == 0
    assert max(service.held_slots) <= NUM_SLOTS
    assert max(service.num_running) == 3


def test_the_others_wait_on_regions(told: tuple[Service, History], regions: Service) -> None:
    assert [fare.waited > 0 for fare in regions.fares] == [False, True, True, True]
    assert max(regions.num_running) == 1 and regions.utilisation < 0.5
    assert regions.held_at_the_end == 0
    assert [fare.text for fare in regions.fares] == [fare.text for fare in told[0].fares]


def test_who_waits_counts_only_steps_without_computing(regions: Service) -> None:
    for fare in regions.fares:
        between = set(range(fare.came, fare.ended + 1))
        assert set(fare.phases) <= between and fare.waited == len(between - set(fare.phases))


def test_b_shares_three_blocks_and_the_third_finds_them(told: tuple[Service, History]) -> None:
    _, history = told
    moments = [history.moment(i) for i in range(len(history))]
    shared = {i: [b.block for b in moment.device_blocks if len(b.holders) > 1] for i, moment in enumerate(moments)}
    assert all(not blocks for i, blocks in shared.items() if i < 10) and shared[10] == [0, 1, 2]
    fork = next(i for i, moment in enumerate(moments) if any(e.kind == "fork" for e in moment.record.events))
    assert [len(moments[fork].device_blocks[block].holders) for block in (0, 1, 2)] == [3, 3, 3]
    copies = [op for moment in moments for op in moment.record.operations if isinstance(op, CopyBlock)]
    assert len(copies) == 1
    assert all(not block.holders for block in moments[-1].device_blocks)


def test_every_block_is_counted_on_every_line(told: tuple[Service, History]) -> None:
    _, history = told
    for i in range(len(history)):
        moment = history.moment(i)
        row = pool_row(Theme(), moment).plain
        assert len(row) == 2 * NUM_SLOTS // BLOCK_SIZE
        for block in moment.device_blocks:
            who = row[2 * block.block]
            assert (who.isdigit() and int(who) == len(block.holders)) or len(block.holders) < 2
        lines = tables(Theme(unicode=False), moment, (), 100).plain.splitlines() if moment.running else []
        for line, state in zip(lines, moment.running, strict=True):
            found = [int(word.split("*")[0]) for word in line.split()[1:-1]]
            assert found == list(state.blocks)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_the_timelines_fit(told: tuple[Service, History], regions: Service, width: int) -> None:
    for service in (told[0], regions):
        picture = timeline(Theme(), "run", service, regions.steps, width)
        assert len(picture) == 5 and all(line.cell_len <= width for line in picture)


# The quiz ------------------------------------------------------------------------------------------------------------


class Reader(Console):
    """Answers from a list, then leaves."""

    def __init__(self, *said: str) -> None:
        super().__init__(quiet=True)
        self.said: Iterator[str] = iter(said)

    def input(self, *args: Any, **kwargs: Any) -> str:
        answer = next(self.said, None)
        if answer is None:
            raise EOFError
        return answer


def all_items(history: History) -> list[Item]:
    return [item for index in range(len(history)) for item in items(history, index)]


def test_what_the_quiz_asks(told: tuple[Service, History]) -> None:
    _, history = told
    assert [item.answer for item in all_items(history)] == [6, 3, 4, 2, 1, 3, 0, 3, 1, 3, 2, 1, 0]
    assert all(item.question.endswith("?") and item.because.endswith(".") for item in all_items(history))
    assert items(history, 1) == [] and first_loss(history) == 27


def stage_with(console: Console, *, quiz: bool, asks: bool = True, mine: Mine | None = None) -> Stage:
    options = argparse.Namespace(quiz=quiz)
    return Stage(LESSON, console, small=True, asks=asks, mine=mine or Mine(), guesses=[0, 97], options=options)


def test_the_quiz_keeps_score_and_goes_on_when_the_reader_leaves() -> None:
    figures = play(stage_with(Reader("6", "what?", "3", "99", "", "1"), quiz=True))
    assert (figures.quiz_asked, figures.quiz_right) == (4, 3)


def test_without_quiz_nobody_is_asked() -> None:
    figures = play(stage_with(Reader("6"), quiz=False))
    assert (figures.quiz_asked, figures.quiz_right) == (0, 0)
    assert set(figures.counts_at_the_end) == {0} and figures.is_right


def test_without_a_terminal_it_answers_itself() -> None:
    console = Console(width=100, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    Quiz(console, is_on=True, asks=False).ask("How many?", 3, "so it is.")
    assert "How many? 3: so it is." in console.export_text()


# Served by the learner's parts ---------------------------------------------------------------------------------------


def test_the_three_are_served_by_what_the_lessons_have_built() -> None:
    answers = {n: find(str(n)).module("solution") for n in (5, 12)}
    figures = play(stage_with(Reader(), quiz=False, mine=Mine(answers)))
    assert figures.is_right and set(figures.counts_at_the_end) == {0}
