"""Lesson 8: steps and idle places follow from the lengths alone, and the frame lets a learner's scheduler serve all."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rich.console import Console

from lessons.lesson08_continuous_batching import LESSON, solution
from lessons.lesson08_continuous_batching.__main__ import play
from lessons.lesson08_continuous_batching.experiment import Figures, Requests, Stay, crowd
from lessons.lesson08_continuous_batching.hall import Hall
from lessons.lesson08_continuous_batching.place_chart import place_chart, steps_per_mark
from lessons.lesson08_continuous_batching.reckoning import continuous_steps, idle_places, least_steps, static_steps
from lessons.lesson08_continuous_batching.waiting_for_the_batch import WaitingForTheBatch
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged import LLM, SamplingParams
from minipaged.parts import Parts
from minipaged.scheduler import Scheduler
from minipaged.viz.theme import Theme


@pytest.fixture(scope="module")
def figures() -> Figures:
    return play(Stage(LESSON, Console(quiet=True), small=True))


def test_the_steps_are_what_was_predicted(figures: Figures) -> None:
    static, continuous = figures.ways[2:]
    assert static.steps == figures.predicted_static > continuous.steps == figures.predicted_steps
    assert continuous.idle == figures.predicted_idle < static.idle
    for way in figures.ways:
        assert way.idle == way.places * way.steps - sum(figures.answer_lengths)
    assert [way.steps for way in figures.ways[:2]] == [sum(figures.answer_lengths)] * 2


def test_nobody_notices_how_it_was_done(figures: Figures) -> None:
    assert figures.same_answers


def test_nobodys_first_token_comes_later(figures: Figures) -> None:
    static, continuous = figures.ways[2:]
    for before, after in zip(static.stays, continuous.stays, strict=True):
        assert after.first <= before.first and after.last <= before.last
        assert after.last - after.first == before.last - before.first


@pytest.mark.parametrize("name", ["solution", "engine_part"])
def test_the_learners_scheduler_is_used_and_changes_nothing(name: str, figures: Figures) -> None:
    found = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine({8: LESSON.module(name)})))
    assert replace(found.ways[-1], seconds=0) == replace(figures.ways[-1], seconds=0)


def test_a_wrong_one_is_used_too() -> None:
    wrong = LESSON.module("mistakes.waits_for_the_batch")
    found = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine({8: wrong})))
    assert found.ways[-1].steps == found.predicted_static and found.same_answers


# The reckoning -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_readme() -> None:
    lengths = [2, 6, 3, 4]
    assert (static_steps(lengths, 2), continuous_steps(lengths, 2), least_steps(lengths, 2)) == (10, 9, 8)
    assert (idle_places(lengths, 2, 10), idle_places(lengths, 2, 9)) == (5, 3)


@pytest.mark.parametrize("seed", range(20))
def test_the_schedulers_take_the_steps_that_are_reckoned(seed: int) -> None:
    generator = random.Random(seed)
    places = generator.randint(1, 5)
    lengths = [generator.randint(1, 20) for _ in range(generator.randint(1, 20))]
    taken = {}
    for made in (WaitingForTheBatch, solution.Scheduler, Scheduler):
        hall = Hall(made, "all", places=places)
        for length in lengths:
            hall.come(prompt=3, max_tokens=length)
        steps = 0
        while hall.scheduler.has_work:
            assert hall.step()
            steps += 1
        taken[made] = steps
        assert hall.memory.held_slots == 0
    assert taken[WaitingForTheBatch] == static_steps(lengths, places)
    assert taken[solution.Scheduler] == taken[Scheduler] == continuous_steps(lengths, places)
    least = least_steps(lengths, places)
    assert least <= taken[Scheduler] <= min(2 * least, taken[WaitingForTheBatch])


def test_the_longer_the_queue_the_smaller_the_tail() -> None:
    lengths = [24, 100, 46, 63, 40, 12, 100, 70]
    crowds = [crowd(lengths, 4, times) for times in (1, 2, 8, 64)]
    assert len({round(one.busy_static, 9) for one in crowds}) == 1
    shares = [one.busy_continuous for one in crowds]
    assert shares == sorted(shares) and shares[-1] > 0.99
    for one in crowds:
        assert one.continuous - one.least < max(lengths)


# The naive way and the frame -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [WaitingForTheBatch, solution.Scheduler])
def test_a_crowd_in_little_memory_comes_to_an_end(made: type[Scheduler]) -> None:
    """With preemptions, chunks, stops and cancellations; all slots come back."""
    num_preemptions = 0
    for seed in range(30):
        generator = random.Random(seed)
        hall = Hall(made, "all", places=generator.randint(1, 4), blocks=6, budget=4 + generator.randint(0, 8))
        for _ in range(200):
            if len(hall.sequences) < 12 and generator.random() < 0.4:
                hall.come(generator.randint(1, 12), generator.randint(1, 12), stop=0)
            if hall.scheduler.has_work:
                assert hall.step(generator.randrange(20)) is not None
                hall.memory.check()
            if hall.sequences and generator.random() < 0.05:
                hall.scheduler.finish(generator.choice(hall.sequences), "cancelled")
        assert not hall.scheduler.has_work and hall.memory.held_slots == 0
        num_preemptions += sum(sequence.num_preemptions for sequence in hall.sequences)
    assert num_preemptions > 5


def test_while_a_batch_runs_nobody_comes_in() -> None:
    hall = Hall(WaitingForTheBatch, "all", places=2)
    for length in (1, 5, 1):
        hall.come(prompt=3, max_tokens=length)
    assert [len(hall.step()) for _ in range(6)] == [2, 1, 1, 1, 1, 1]
    assert hall.sequences[2].finish_reason == "length"


@pytest.mark.parametrize("made", [WaitingForTheBatch, solution.Scheduler])
def test_the_frame_serves_what_the_engine_serves(made: type[Scheduler]) -> None:
    """Answers that part, stop strings, priorities among equals, little memory: the same tokens as the engine's own."""
    outputs = []
    for scheduler in (Scheduler, made):
        llm = LLM("tiny-gpt", parts=replace(Parts(), scheduler=scheduler), num_blocks=10, block_size=8,
                  max_sequences=3, max_batch_tokens=8)  # fmt: skip
        params = [
            SamplingParams(n=3, temperature=1.0, max_tokens=12, seed=3),
            SamplingParams(temperature=0, max_tokens=30, stop=["the"]),
            SamplingParams(n=2, temperature=1.0, max_tokens=20, seed=5),
            SamplingParams(temperature=0, max_tokens=25),
        ]
        found = llm.generate(["What is tea?", "Tell me about the brain.", "什么是黑洞", "What is tea?"], params,
                             progress=False)  # fmt: skip
        outputs.append([[one.token_ids for one in output.outputs] for output in found])
        assert llm.engine.scheduler.memory.held_slots == 0
    assert outputs[0] == outputs[1]


def test_a_sequence_is_in_a_step_once() -> None:
    class Twice(solution.Scheduler):
        def fill(self) -> None:
            for sequence in self.places * 2:
                self.compute(sequence)
            if self.queue and self.admit(self.queue[0]):
                self.places.append(self.queue.pop(0))

    hall = Hall(Twice, "all", places=2)
    hall.come(prompt=3)
    hall.step()
    with pytest.raises(ValueError, match="in the step already"):
        hall.schedule()


# The picture ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [60, 100])
def test_the_chart_shows_who_had_which_place(width: int, unicode: bool) -> None:
    stays = [Stay(0, 0, 1, 2), Stay(1, 1, 1, 6), Stay(2, 0, 3, 5)]
    chart = place_chart(Theme(unicode, "none"), "way", stays, 2, 6, 1, width).plain.splitlines()
    assert chart[0].endswith("6 steps, 1 idle") and len(chart[0]) <= width
    long, idle = ("━", "·") if unicode else ("=", ".")
    assert chart[1] == f"place 1 A{long}C{long}{long}{idle}"
    assert chart[2] == f"place 2 B{long * 5}"
    assert steps_per_mark(200, 100) == 3 and steps_per_mark(92, 100) == 1


def test_the_requests_of_the_full_play_are_lesson_3s() -> None:
    from lessons.lesson03_static_batching import experiment as lesson_3
    from lessons.lesson08_continuous_batching.experiment import PLACES, WORK

    assert WORK == lesson_3.WORK
    assert len(Requests(WORK, PLACES, "cpu").prompts) == 8
