"""Lesson 5: what its two allocators promise, and the figures that must hold on every machine."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from rich.console import Console

from lessons.lesson05_block_table import LESSON
from lessons.lesson05_block_table.__main__ import BLOCK_SIZES, LONGEST, NUM_LENGTHS, play
from lessons.lesson05_block_table.allocator import Allocator
from lessons.lesson05_block_table.contiguous_regions import ContiguousRegions
from lessons.lesson05_block_table.experiment import ENGINE_BLOCK_SIZE, NUM_SLOTS, sequence_lengths, tell, waste
from lessons.lesson05_block_table.paged_slots import PagedSlots
from lessons.lesson05_block_table.slot_map import block_row, region_map
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.viz.theme import Theme

MAKERS: dict[str, Callable[[int], Allocator]] = {
    "regions": ContiguousRegions,
    "blocks of 1": lambda num_slots: PagedSlots(num_slots, 1),
    "blocks of 4": lambda num_slots: PagedSlots(num_slots, 4),
}
each_allocator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@each_allocator
def test_no_slot_has_two_owners_and_a_refusal_changes_nothing(make: Callable[[int], Allocator]) -> None:
    generator = random.Random(1)
    allocator, lengths = make(64), dict[str, int]()
    refusals = 0
    for number in range(600):
        before = {name: [allocator.slot(name, i) for i in range(length)] for name, length in lengths.items()}
        action = generator.choice(["admit", "append", "append", "release"])
        name = generator.choice(sorted(lengths)) if lengths else ""
        if action == "admit" or not name:
            name, length = f"r{number}", generator.randint(1, 20)
            granted = allocator.admit(name, length)
            if granted:
                lengths[name] = length
        elif action == "append":
            granted = allocator.append(name)
            lengths[name] += granted
        else:
            granted = True
            allocator.release(name)
            del lengths[name]
        now = {name: [allocator.slot(name, i) for i in range(length)] for name, length in lengths.items()}
        if not granted:
            refusals += 1
            assert now == before
        slots = [slot for own in now.values() for slot in own]
        assert len(set(slots)) == len(slots) == allocator.live_slots
        assert all(0 <= slot < 64 for slot in slots)
        assert allocator.free_slots <= 64 - len(slots)
    assert refusals > 20


@each_allocator
def test_a_position_that_is_not_there_is_refused(make: Callable[[int], Allocator]) -> None:
    allocator = make(16)
    assert allocator.admit("A", 5)
    for position in (5, -1):
        with pytest.raises(IndexError):
            allocator.slot("A", position)
    with pytest.raises(ValueError, match="already"):
        allocator.admit("A", 1)


def test_blocks_are_refused_only_when_they_are_gone() -> None:
    paged = PagedSlots(64, 4)
    assert paged.admit("A", 61) and not paged.admit("B", 1)
    assert paged.free_slots == 0 and paged.empty_slots("A") == 3


def test_regions_refuse_what_fits_in_no_hole() -> None:
    regions = ContiguousRegions(10)
    for name in "ABCDE":
        assert regions.admit(name, 2)
    regions.release("B")
    regions.release("D")
    assert regions.free_slots == 4 and regions.largest_hole == 2
    assert not regions.admit("F", 3)
    assert regions.regions == {"A": (0, 2), "C": (4, 2), "E": (8, 2)}


def test_a_region_moves_only_when_a_neighbour_is_in_the_way() -> None:
    regions = ContiguousRegions(20)
    assert regions.admit("A", 3) and regions.append("A") and regions.num_moved == 0
    assert regions.admit("B", 2) and regions.append("A") and regions.num_moved == 4
    assert regions.slot("A", 0) == 6


def test_a_name_without_a_region_is_refused() -> None:
    regions = ContiguousRegions(10)
    for call in (lambda: regions.append("A"), lambda: regions.release("A"), lambda: regions.slot("A", 0)):
        with pytest.raises(ValueError, match="A has no region; admit it first"):
            call()


@pytest.mark.parametrize("make", [lambda: ContiguousRegions(0), lambda: PagedSlots(10, 4), lambda: PagedSlots(0, 4)])
def test_an_impossible_memory_is_refused(make: Callable[[], Allocator]) -> None:
    with pytest.raises(ValueError):
        make()


def test_the_story() -> None:
    regions, paged = ContiguousRegions(NUM_SLOTS), PagedSlots(NUM_SLOTS, 4)
    of_regions, of_blocks = tell(regions), tell(paged)
    assert [beat.granted for beat in of_regions] == [True] * 6 + [False]
    assert all(beat.granted for beat in of_blocks)
    assert (of_regions[-1].free_slots, regions.largest_hole, regions.num_moved) == (49, 20, 20)
    assert of_blocks[-1].free_slots == 0 and paged.live_slots == 123


def test_waste_is_less_than_a_block_and_half_of_one_on_average() -> None:
    lengths = sequence_lengths(NUM_LENGTHS, LONGEST)
    for row in (waste(block_size, lengths) for block_size in BLOCK_SIZES):
        assert row.most_empty < row.block_size
        assert row.mean_empty == pytest.approx((row.block_size - 1) / 2, rel=0.05)
        assert row.utilisation == pytest.approx(sum(lengths) / (row.table_entries * row.block_size))


@pytest.mark.parametrize("answers", [{}, {5: LESSON.module("solution")}, {5: LESSON.module("engine_part")}])
def test_the_play_and_its_figures(answers: dict[int, object]) -> None:
    figures = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine(answers)))  # type: ignore[arg-type]
    assert figures.engine.most_empty < ENGINE_BLOCK_SIZE
    assert 0 < figures.engine.mean_empty < ENGINE_BLOCK_SIZE
    assert figures.paged_refusals == 0 and figures.regions_free_at_refusal > figures.regions_largest_hole
    assert figures.engine_is_right


def test_the_maps_show_whose_each_slot_is() -> None:
    theme = Theme()
    regions = region_map(theme, 16, {"A": range(5), "B": range(8, 10)})
    assert regions.plain == "AAA·B···"
    assert block_row(theme, 4, 4, {"A": ([2, 0], 5)}).plain == "A▂· A█· "
