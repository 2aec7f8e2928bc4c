"""The slot map: whose each slot is, small enough to be read off."""

from __future__ import annotations

import pytest

from minipaged.viz.slot_map import Region, legend, slot_map, slot_rows
from minipaged.viz.theme import Theme

A = Region(sequence=0, table=(2, 0), block_size=4, num_live=6)
B = Region(sequence=1, table=(2, 3), block_size=4, num_live=8)  # begins with A's first block


def rows(regions: list[Region], per_cell: int = 1, columns: int = 32, *, unicode: bool = True) -> list[str]:
    return slot_rows(regions, 20, Theme(unicode, "none"), per_cell, columns).plain.splitlines()


@pytest.mark.parametrize(("unicode", "free"), [(True, "·"), (False, ".")])
def test_blocks_lie_where_their_table_says(unicode: bool, free: str) -> None:
    assert rows([A], unicode=unicode) == [" 0 AAaa" + free * 4 + "AAAA" + free * 8]
    assert rows([A, B], unicode=unicode) == [" 0 AAaa" + free * 4 + "2222BBBB" + free * 4]


def test_rows_say_their_first_slot() -> None:
    assert rows([A, B], columns=8) == [" 0 AAaa····", " 8 2222BBBB", "16 ····"]


def test_a_table_of_slots_is_a_region() -> None:
    assert rows([Region(2, range(5, 9), 1, 3)]) == [" 0 " + "·" * 5 + "CCCc" + "·" * 11]


def test_a_character_shows_what_most_of_its_slots_are() -> None:
    assert rows([Region(0, range(7), 1, 3)], per_cell=4) == [" 0 Aa···"]  # AAAa aaa· ···· ···· ····


def test_more_holders_than_a_digit_says() -> None:
    assert rows([Region(i, (0,), 4, 4) for i in range(9)])[0].startswith(" 0 9999·")
    assert rows([Region(i, (0,), 4, 4) for i in range(10)])[0].startswith(" 0 ####·")


def test_after_z_comes_a_again() -> None:
    assert rows([Region(27, (0,), 4, 1)])[0].startswith(" 0 Bbbb")


@pytest.mark.parametrize("width", [8, 20, 80])
@pytest.mark.parametrize("height", [1, 3])
def test_the_map_has_the_room_that_it_is_given(width: int, height: int) -> None:
    theme = Theme(True, "none")
    picture, per_cell = slot_map([A, B], 20, theme, width, height)
    lines = picture.plain.splitlines()
    assert len(lines) <= height and max(map(len, lines)) <= width
    assert (f"{per_cell} slots" if per_cell > 1 else "is a slot") in legend(theme, per_cell).plain
