"""Lesson 9: gaps and steps follow from the prompt, the writers and the budget alone, and the budget fits the engine."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from lessons.lesson08_continuous_batching import solution as lesson_8
from lessons.lesson08_continuous_batching.hall import Hall
from lessons.lesson09_chunked_prefill import LESSON, experiment, solution
from lessons.lesson09_chunked_prefill.__main__ import play
from lessons.lesson09_chunked_prefill.experiment import BUDGET, WRITERS, Figures, Step, sweep
from lessons.lesson09_chunked_prefill.plug import plug
from lessons.lesson09_chunked_prefill.prefill_first import PrefillFirst
from lessons.lesson09_chunked_prefill.reckoning import (
    gap_of_a_budget,
    gap_of_prefill_first,
    steps_of_a_budget,
)
from lessons.lesson09_chunked_prefill.step_bars import step_bars
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged import LLM, SamplingParams
from minipaged.cli.random_checkpoint import Size
from minipaged.parts import Parts
from minipaged.scheduler import Scheduler
from minipaged.viz.theme import Theme


@pytest.fixture(scope="module")
def figures() -> Figures:
    return play(Stage(LESSON, Console(quiet=True), small=True))


def test_gaps_and_steps_are_what_was_predicted(figures: Figures) -> None:
    naive, chunked = figures.prefill_first, figures.chunked
    assert naive.gap_tokens == figures.predicted_gap_first > chunked.gap_tokens == figures.predicted_gap == BUDGET
    assert naive.first_steps == 1 < chunked.first_steps == figures.predicted_steps


def test_no_step_is_above_the_budget_and_everybody_is_in_each(figures: Figures) -> None:
    steps = figures.chunked.steps
    assert max(step.num_tokens for step in steps) == BUDGET
    assert all(step.decode == len(WRITERS) for step in steps[1:])
    naive = figures.prefill_first.steps[figures.prefill_first.arrived - 1]
    assert (naive.decode, naive.prompt) == (0, figures.prompt_tokens)
    for arrival in (figures.prefill_first, figures.chunked):
        of_prompt = [step.prompt for step in arrival.steps[arrival.arrived - 1 :][: arrival.first_steps]]
        assert sum(of_prompt) == figures.prompt_tokens


def test_a_prompt_in_pieces_gives_the_same_answer(figures: Figures) -> None:
    assert figures.same_answers
    assert figures.prefill_first.answers[-1] == figures.chunked.answers[-1]


@pytest.mark.parametrize("answers", [(9,), (8, 9), (8,)], ids=str)
def test_the_learners_parts_are_used_and_change_nothing(answers: tuple[int, ...], figures: Figures) -> None:
    mine = Mine({n: lesson_8 if n == 8 else solution for n in answers})  # type: ignore[misc]
    found = play(Stage(LESSON, Console(quiet=True), small=True, mine=mine)).chunked
    assert found.answers == figures.chunked.answers
    assert [step.num_tokens for step in found.steps] == [step.num_tokens for step in figures.chunked.steps]


def test_a_wrong_budget_shows() -> None:
    wrong = LESSON.module("mistakes.budget_per_sequence")
    found = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine({9: wrong})))
    assert found.chunked.gap_tokens > found.predicted_gap and found.same_answers


# The reckoning -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_readme() -> None:
    assert (gap_of_prefill_first(12, 3), gap_of_a_budget(12, 3, 8), steps_of_a_budget(12, 3, 8)) == (16, 8, 3)
    assert (gap_of_prefill_first(480, 3), gap_of_a_budget(480, 3, 64), steps_of_a_budget(480, 3, 64)) == (484, 64, 8)


@pytest.mark.parametrize("seed", range(30))
def test_the_schedulers_do_what_is_reckoned(seed: int) -> None:
    generator = random.Random(seed)
    writing, prompt = generator.randint(1, 5), generator.randint(2, 200)
    budget = writing + generator.randint(1, 60)
    made: Any = type("Scheduler", (solution.Scheduler, lesson_8.Scheduler), {})
    for kind, size in ((Scheduler, budget), (made, budget), (PrefillFirst, 1000)):
        hall = Hall(kind, "all", places=writing + 1, blocks=400, budget=size)
        for _ in range(writing):
            hall.come(prompt=1, max_tokens=400)
        hall.step()
        newcomer = hall.come(prompt)
        steps, gap, longest = 0, 0, 0
        while len(newcomer.draws) < 2:
            step = hall.step()
            gap += sum(n for _, n in step)
            if ("A", 1) in step:
                longest, gap = max(longest, gap), 0
            steps += not newcomer.draws
        if kind is PrefillFirst:
            assert (longest, steps + 1) == (gap_of_prefill_first(prompt, writing), 1)
        else:
            assert longest == gap_of_a_budget(prompt, writing, budget)
            assert steps + 1 == steps_of_a_budget(prompt, writing, budget)


def test_prefill_first_computes_all_that_wait_before_anybody_writes_on() -> None:
    hall = Hall(PrefillFirst, "all", places=4, budget=10)
    hall.come(prompt=1)
    hall.step()
    for prompt in (8, 8):
        hall.come(prompt)
    assert hall.step() == [("B", 8), ("C", 2)]
    assert hall.step() == [("C", 6)]
    assert hall.step() == [("A", 1), ("B", 1), ("C", 1)]


# The plug ------------------------------------------------------------------------------------------------------------


def test_the_plug_stands_on_lesson_8_where_it_is_there() -> None:
    exercise: Any = SimpleNamespace(Scheduler=solution.Scheduler)
    mine = type("Mine", (lesson_8.Scheduler,), {})
    on_ours, on_mine = plug(Parts(), exercise), plug(replace(Parts(), scheduler=mine), exercise)
    assert issubclass(on_ours.scheduler, lesson_8.Scheduler)  # type: ignore[arg-type]
    assert issubclass(on_mine.scheduler, mine)  # type: ignore[arg-type]
    for parts in (on_ours, on_mine):
        assert parts.scheduler.fill is solution.Scheduler.fill  # type: ignore[attr-defined]
        assert parts.scheduler.book is lesson_8.Scheduler.book  # type: ignore[attr-defined]


def test_the_plugged_engine_serves_what_ours_serves() -> None:
    exercise: Any = SimpleNamespace(Scheduler=solution.Scheduler)
    outputs = []
    for parts in (Parts(), plug(Parts(), exercise)):
        llm = LLM("tiny-gpt", parts=parts, num_blocks=12, block_size=8, max_sequences=4, max_batch_tokens=6)
        params = [
            SamplingParams(n=3, temperature=1.0, max_tokens=10, seed=3),
            SamplingParams(temperature=0, max_tokens=40),
            SamplingParams(temperature=0, max_tokens=20),
        ]
        found = llm.generate(
            [list(range(1, 40)), "Tell me about the brain.", list(range(1, 30))], params, progress=False
        )
        outputs.append([[one.token_ids for one in output.outputs] for output in found])
        assert llm.engine.scheduler.memory.held_slots == 0
    assert outputs[0] == outputs[1]


# The sweep and the picture -------------------------------------------------------------------------------------------


def test_a_smaller_budget_makes_smaller_gaps_and_later_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, with a model that takes no time."""
    monkeypatch.setattr(experiment, "SIZES", {"12.6M": Size(num_layers=1, num_heads=1, width=8, vocab_size=64)})
    first, *runs = sweep((16, 64, 512), Scheduler, "cpu", rounds=1)
    assert (first.gap_tokens, first.first_steps) == (484, 1)
    assert [(run.gap_tokens, run.first_steps) for run in runs] == [(16, 37), (64, 8), (483, 1)]
    assert all(run.gap_seconds > 0 and run.first_seconds > 0 for run in runs)


def test_the_temporary_model_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(experiment, "SIZES", {"12.6M": Size(num_layers=1, num_heads=1, width=8, vocab_size=64)})
    sweep((256,), Scheduler, "cpu", rounds=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [60, 100])
def test_the_bars_are_as_long_as_the_steps(width: int, unicode: bool) -> None:
    steps = [Step(4, 3, 0, 0.1), Step(5, 3, 61, 0.1), Step(6, 0, 480, 0.1)]
    lines = step_bars(Theme(unicode, "none"), "way", "facts", steps, None, 480, width).plain.splitlines()
    prompt = "█" if unicode else "#"
    assert [line.split()[-3:] for line in lines[1:]] == [["3", "+", "0"], ["3", "+", "61"], ["0", "+", "480"]]
    assert [line.count(prompt) for line in lines[1:]] == [0, round(61 * (width - 22) / 480), width - 22]
    assert max(map(len, lines)) <= width
    walled = step_bars(Theme(unicode, "none"), "way", "facts", steps[:2], 64, 480, width).plain.splitlines()[1:]
    assert len({line.index("│" if unicode else "|") for line in walled}) == 1
