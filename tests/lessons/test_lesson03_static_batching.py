"""Lesson 3: its counts hold on every machine, and follow from the lengths alone."""

from __future__ import annotations

import pytest
from rich.console import Console

from lessons.lesson03_static_batching import LESSON, solution
from lessons.lesson03_static_batching.__main__ import play
from lessons.lesson03_static_batching.experiment import WORK, Figures, Requests, step_costs
from lessons.lesson03_static_batching.timeline import timeline
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.config import ModelConfig
from minipaged.viz.theme import Theme


@pytest.fixture(scope="module")
def figures() -> Figures:
    return play(Stage(LESSON, Console(quiet=True), small=True))


def test_the_waste_is_what_was_predicted(figures: Figures) -> None:
    together = figures.served[-1]
    assert together.batch_size == len(figures.prompt_lengths)
    assert (together.padded, together.idle) == (figures.predicted_padded, figures.predicted_idle)


def test_rows_are_useful_padded_or_idle(figures: Figures) -> None:
    # Each answer's last token is drawn and never computed.
    useful = sum(figures.prompt_lengths) + sum(figures.answer_lengths) - len(figures.answer_lengths)
    for way in figures.served:
        assert way.rows == useful + way.padded + way.idle
        assert way.useful == pytest.approx(useful / way.rows)


def test_a_batch_takes_as_many_passes_as_its_slowest_member(figures: Figures) -> None:
    alone, together = figures.served[0], figures.served[-1]
    assert alone.steps == sum(figures.answer_lengths) and alone.padded == alone.idle == 0
    assert together.steps == max(figures.answer_lengths)
    assert [way.steps for way in figures.served] == sorted((way.steps for way in figures.served), reverse=True)


def test_nobody_notices_that_they_were_in_a_batch(figures: Figures) -> None:
    assert figures.same_answers


def test_with_the_learners_parts_their_padding_is_used() -> None:
    """Seen by a wrong one: drawn from padding, the answers change."""
    wrong = LESSON.module("mistakes.drawn_from_padding")
    found = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine({LESSON.number: wrong})))
    assert not found.same_answers


def test_the_example_of_the_readme() -> None:
    padded, idle = solution.wasted_rows([5, 8, 2], [3, 10, 2])
    assert (padded, idle) == (9, 15)
    rows = 3 * 8 + 3 * 9
    assert rows == 51 and rows - padded - idle == 27


def test_the_full_work_has_answers_that_end_by_themselves() -> None:
    """What the README says of the poems; the others are as long as their askers wanted."""
    requests = Requests(WORK, "cpu")
    served = requests.serve(8, solution)
    by_themselves = [len(answer) < limit for answer, (_, limit) in zip(served.answers, WORK, strict=True)]
    assert by_themselves == [False, False, True, True, False, False, False, False]


def test_a_step_of_a_large_model_is_timed_for_each_number_of_rows() -> None:
    costs = step_costs((1, 3), "cpu", rounds=2, config=ModelConfig(50, 16, 1, 1, 1, 8, 8, 16))
    assert [cost.rows for cost in costs] == [1, 3] and all(cost.seconds > 0 for cost in costs)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_timeline_fits_and_counts(width: int, unicode: bool) -> None:
    lines = timeline(Theme(unicode, "none"), [5, 8, 2], [3, 10, 2], width).plain.splitlines()
    assert [line.split()[-2] for line in lines[:3]] == ["7", "0", "8"]
    assert max(map(len, lines[:3])) <= width
    assert unicode or all(line.isascii() for line in lines)
