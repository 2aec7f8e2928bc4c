"""Conformance 14 to 19 and 21: what each step computes, and that everything ends."""

from __future__ import annotations

import pytest

from minipaged.scheduler import Scheduler
from tests.house import House, manager


def test_14_two_unrelated_prompts_share_a_budget() -> None:
    house = House(100, 16, budget=64)
    house.add(60, max_tokens=2)
    house.add(60, max_tokens=2)
    assert house.step() == {0: 60, 1: 4}
    assert house.step() == {0: 1, 1: 56}


def test_15_chunk_limit_and_budget() -> None:
    house = House(1000, 16, budget=1024, max_chunk_tokens=400)
    for _ in range(3):
        house.add(800, max_tokens=5)
    assert house.step() == {0: 400, 1: 400, 2: 224}
    assert house.step() == {0: 400, 1: 400, 2: 224}
    assert house.step() == {0: 1, 1: 1, 2: 352}
    house.run()
    house.assert_answers_right()


def test_16_the_second_gives_way_and_resumes() -> None:
    house = House(2, 4)
    first, second = house.add(4, max_tokens=4), house.add(4, max_tokens=4)
    assert house.step() == {0: 4, 1: 4}, "both start"
    assert house.step() == {0: 1}, "the first needs its second block"
    (sequence,) = second.sequences
    assert sequence.num_preemptions == 1
    assert (len(sequence.tokens), sequence.num_computed) == (5, 0)
    steps = house.run()
    resumed = next(step for step in steps if 1 in step)
    assert resumed == {1: 5}
    house.assert_answers_right(first, second)
    house.assert_empty()


@pytest.mark.parametrize("excess", [-1, 0, 1])
@pytest.mark.parametrize("limit", ["pool", "context"])
def test_17_what_could_never_fit_is_refused_with_both_numbers(limit: str, excess: int) -> None:
    house = House(4, 8) if limit == "pool" else House(100, 8, max_positions=32)
    prompt, max_tokens = 20, 13 + excess  # 20 + 13 - 1 = 32 slots
    if excess > 0:
        with pytest.raises(ValueError, match=r"needs 33 token slots .* above the 32"):
            house.add(prompt, max_tokens=max_tokens)
    else:
        house.add(prompt, max_tokens=max_tokens)
    behind = house.add(5, max_tokens=3)
    house.run()
    assert len(behind.sequences[0].output_token_ids) == 3
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("budget", [12, 64])
def test_18_a_long_prompt_starves_nobody(n: int, budget: int) -> None:
    house = House(1000, 16, budget=budget, max_sequences=12)
    decoding = [house.add(3, max_tokens=60, n=n) for _ in range(3)]
    while any(not sequence.draws for request in decoding for sequence in request.sequences):
        house.step()
    long = house.add(500, max_tokens=2)
    ids = {sequence.id for request in decoding for sequence in request.sequences}
    while not long.sequences[0].draws and all(not request.finished for request in decoding):
        computed = house.step()
        assert ids <= computed.keys(), "every decoding sequence gets its token"
    house.run()
    house.assert_answers_right()


def test_18_forks_behind_a_long_prompt_are_not_starved() -> None:
    """Eight answers start at once behind an older prompt that would take half of the budget: it must take less."""
    house = House(1000, 16, budget=12, max_sequences=12, max_chunk_tokens=6)
    long = house.add(500, max_tokens=2)
    many = house.add(6, max_tokens=20, n=8)
    assert house.step() == {0: 6, 1: 6}
    while not many.finished:
        computed = house.step()
        assert computed[long.sequences[0].id] == 4
        assert all(computed[sequence.id] == 1 for sequence in many.sequences)
    house.run()
    house.assert_answers_right()


def test_18_a_budget_below_the_number_of_sequences_is_refused() -> None:
    with pytest.raises(ValueError, match="max_batch_tokens 7, max_sequences 8"):
        Scheduler(manager(4, 4), max_batch_tokens=7, max_sequences=8)


def test_19_five_requests_to_the_end() -> None:
    house = House(20, 4, budget=16)
    for i in range(5):
        house.add(3 + 4 * i, max_tokens=6)
    house.run()
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize("watermark_blocks", [0, 1, 4])
def test_21_a_pool_that_fits_exactly_one(watermark_blocks: int) -> None:
    house = House(4, 4, watermark_blocks=watermark_blocks)
    for _ in range(20):
        house.add(10, max_tokens=7)
    ended: list[int] = []
    while house.engine.has_work:
        house.step()
        ended += [request.id for request in house.requests if request.finished and request.id not in ended]
    assert ended == list(range(20)), "in order"
    house.assert_answers_right()
    house.assert_empty()


def test_20_all_finish_the_oldest_first() -> None:
    house = House(5, 4)
    for _ in range(3):
        house.add(8, max_tokens=12)
    ended: list[int] = []
    while house.engine.has_work:
        house.step()
        ended += [request.id for request in house.requests if request.finished and request.id not in ended]
    assert ended == [0, 1, 2]
    house.assert_answers_right()
    house.assert_empty()
