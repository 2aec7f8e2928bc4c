"""Lesson 12: what its naive parts promise, the formula, and the figures that must hold on every machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from lessons.lesson12_swap_manager import LESSON
from lessons.lesson12_swap_manager.__main__ import BLOCK_SIZES, play
from lessons.lesson12_swap_manager.cost_model import A100_PCIE3, A100_PCIE4, Platform
from lessons.lesson12_swap_manager.experiment import BLOCK_SIZE, PAIR_BLOCKS, TURNS, pair, turns
from lessons.lesson12_swap_manager.first_in_first_out import FirstInFirstOut
from lessons.lesson12_swap_manager.plug import plug
from lessons.lesson12_swap_manager.pool_chart import pool_chart
from lessons.lesson12_swap_manager.refusing_scheduler import RefusingScheduler
from lessons.lesson12_swap_manager.small_engine import SmallEngine, is_right
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.parts import Parts
from minipaged.viz.theme import Theme

SOLUTION = plug(Parts(), LESSON.module("solution"))
each_parts = pytest.mark.parametrize("parts", [Parts(), SOLUTION], ids=["the engine's", "the solution's"])


def test_the_refusing_scheduler_ends_the_needy_and_harms_nobody() -> None:
    house = SmallEngine.of(Parts(scheduler=RefusingScheduler), 8, 4)
    requests = [house.add([100 * i + j for j in range(7)], 18) for i in range(5)]
    house.run()
    failed = [request for request in requests if request.error]
    assert failed and len(failed) < len(requests)
    assert all("out of memory after" in str(request.error) for request in failed)
    assert all(request.sequences[0].finish_reason == "error" for request in failed)
    assert all(is_right(request) for request in requests if request not in failed)
    assert house.memory.held_slots == 0


def test_nobody_is_refused_while_there_is_room() -> None:
    house = SmallEngine.of(Parts(scheduler=RefusingScheduler), 20, 4)
    requests = [house.add([100 * i + j for j in range(7)], 10) for i in range(5)]
    house.run()
    assert all(map(is_right, requests))


@each_parts
def test_the_pair(parts: Parts) -> None:
    refused = pair(parts, refuse=True)
    assert (refused.answered, refused.failed, refused.tokens_lost) == (1, 1, PAIR_BLOCKS // 2 * BLOCK_SIZE)
    found = {n: pair(parts, n) for n in range(5)}
    assert [outcome.tokens_recomputed for outcome in found.values()] == [12, 8, 4, 0, 0]
    assert [outcome.blocks_out for outcome in found.values()] == [0, 3, 3, 3, 3]
    assert [outcome.blocks_in for outcome in found.values()] == [0, 1, 2, 3, 3]
    assert len({str(outcome.answers) for outcome in found.values()}) == 1
    for outcome in found.values():
        assert outcome.failed == 0 and outcome.preemptions == 1
        assert outcome.bytes_moved == (outcome.blocks_out + outcome.blocks_in) * BLOCK_SIZE * 4096
        assert outcome.tokens_recomputed + outcome.blocks_in * BLOCK_SIZE == 12


@each_parts
def test_the_turns(parts: Parts) -> None:
    told = turns(parts)
    assert "".join(turn.name for turn in told) == TURNS
    assert [turn.computed for turn in told] == [9, 9, 9, 1, 9, 9, 1]
    assert all(turn.found + turn.computed == 9 for turn in told)
    assert told[4].blocks_out == 0, "D drives out A, whose copies are on the host already"
    assert told[5].dropped == 2 and not {"B0", "B1"} & set(told[5].host), "the least recently used goes"
    for turn in told:
        queue = [turn.host[block] for block in turn.queue]
        for name in TURNS:
            both = [what for what in queue if what[0] == name]
            assert both in ([], [f"{name}1", f"{name}0"], [f"{name}0", f"{name}1"])
            if both and all(block in turn.sole for block in turn.queue if turn.host[block] in both):
                assert both == [f"{name}1", f"{name}0"], "children before parents"


def test_order_of_arrival_drops_what_is_wanted() -> None:
    by_use, by_arrival = turns(Parts()), turns(replace(Parts(), swap=FirstInFirstOut))
    assert sum(turn.computed for turn in by_arrival) == sum(turn.computed for turn in by_use) + 8


def test_the_formula() -> None:
    platform = A100_PCIE3
    assert platform.token_bytes == 819_200
    assert platform.copies(16, 1024, per_layer=True) == 64 * 80 and platform.copies(16, 1000, per_layer=False) == 63
    free = replace(platform, copy_seconds=0.0)
    assert free.swap_seconds(1, 100, per_layer=True) == free.swap_seconds(1, 100, per_layer=False)
    assert platform.recompute_seconds(2048) == 2 * platform.recompute_seconds(1024)


@pytest.mark.parametrize("platform", [A100_PCIE3, A100_PCIE4])
@pytest.mark.parametrize("per_layer", [True, False])
def test_they_cross_where_the_formula_says(platform: Platform, per_layer: bool) -> None:
    crossing = platform.crossing(per_layer=per_layer)
    for block_size in (1, 2, 4, 8, 16, 32, 64, 128):
        tokens = 128 * block_size
        moving, computing = (
            platform.swap_seconds(block_size, tokens, per_layer=per_layer),
            platform.recompute_seconds(tokens),
        )
        assert (moving < computing) == (block_size > crossing)


def test_what_the_paper_reports_follows() -> None:
    platform = A100_PCIE3
    assert platform.swap_seconds(1, 1024, per_layer=True) > 5 * platform.recompute_seconds(1024)
    assert 16 <= platform.crossing(per_layer=True) <= 64
    assert platform.crossing(per_layer=False) < 1
    for block_size in (*BLOCK_SIZES, 10_000):
        assert platform.recompute_seconds(1024) < 1.2 * platform.swap_seconds(block_size, 1024, per_layer=True)
    assert replace(platform, link_bytes=1e9).crossing(per_layer=False) == float("inf")


@pytest.mark.parametrize("answers", [{}, {12: LESSON.module("solution")}])
def test_the_play_and_its_figures(answers: dict[int, object]) -> None:
    figures = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine(answers)))  # type: ignore[arg-type]
    assert figures.is_right
    rush = list(figures.rush.values())
    assert rush[0].failed > 0 and all(outcome.failed == 0 for outcome in rush[1:])
    assert rush[1].tokens_recomputed > rush[2].tokens_recomputed and rush[2].bytes_moved > 0 == rush[1].bytes_moved


def test_the_chart_says_what_lies_where() -> None:
    lines = pool_chart(Theme(), turns(Parts())).plain.splitlines()
    assert len({line.index("│") for line in lines[:8]}) == 1
    assert "A1= A0=" in lines[4] and lines[5].startswith("D     D0  D1  ·")
