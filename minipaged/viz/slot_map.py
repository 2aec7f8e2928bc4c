"""The slot map: any memory's token slots as rows of characters, whether it has blocks or not.

    A   tokens of sequence A         2   tokens that two sequences share
    a   held by A, and empty         ·   free

Where there are more slots than room, a character stands for several, and shows what most of them are. It draws what it
is told, and knows no memory. The block map says more, of a memory that has blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass

from rich.text import Text

from minipaged.viz.picture import Picture
from minipaged.viz.theme import LETTERS, Theme

_CAPITALS = 26
MANY = "#"  # shared by ten or more


@dataclass(frozen=True, slots=True)
class Region:
    """What one sequence holds.

    Args:
        sequence: its id.
        table: its block table.
        block_size: token slots in a block; 1 where a table lists slots.
        num_live: slots that hold a token; they are the first ones.
    """

    sequence: int
    table: Items[int]
    block_size: int
    num_live: int

    @property
    def num_slots(self) -> int:
        return len(self.table) * self.block_size


Slot = tuple[tuple[int, ...], bool] | None  # whose, and whether a token is in it; None for a free one


def slot_rows(regions: Iterable[Region], num_slots: int, theme: Theme, slots_per_cell: int, columns: int) -> Picture:
    """The map alone, with the number of each row's first slot.

    Args:
        regions: of all sequences that hold slots.
        num_slots: of the memory.
        theme: how things look.
        slots_per_cell: slots that one character stands for.
        columns: characters in a row.
    """
    slots: list[Slot] = [None] * num_slots
    for region in regions:
        for logical, block in enumerate(region.table):
            for offset in range(region.block_size):
                slot = block * region.block_size + offset
                before = slots[slot]
                owners = (*(before[0] if before else ()), region.sequence)
                is_live = logical * region.block_size + offset < region.num_live
                slots[slot] = owners, is_live or (before is not None and before[1])
    label = len(str(num_slots))
    lines = []
    for first in range(0, num_slots, slots_per_cell * columns):
        row = Text.assemble((f"{first:{label}} ", theme.role("quiet")))
        for start in range(first, min(first + slots_per_cell * columns, num_slots), slots_per_cell):
            row.append_text(_cell(slots[start : start + slots_per_cell], theme))
        lines.append(row)
    return Picture(lines)


def slot_map(regions: Iterable[Region], num_slots: int, theme: Theme, width: int, height: int) -> tuple[Picture, int]:
    """The map in at most so many cells, and how many slots a character stands for in it."""
    columns = max(width - len(str(num_slots)) - 1, 1)
    per_cell = 1
    while -(-num_slots // (per_cell * columns)) > max(height, 1):
        per_cell *= 2
    return slot_rows(regions, num_slots, theme, per_cell, columns), per_cell


def legend(theme: Theme, slots_per_cell: int) -> Text:
    """What the characters mean."""
    each = "a character is a slot" if slots_per_cell == 1 else f"a character is {slots_per_cell} slots"
    says = f"{each}: A a token of A, a held and empty, 2 shared by two, {theme.glyphs.free} free"
    return Text(says, theme.role("quiet"))


def capital(sequence: int) -> str:
    """The letter of a sequence: A to Z, and round again. Small letters mean something else here."""
    return LETTERS[sequence % _CAPITALS]


def _cell(slots: list[Slot], theme: Theme) -> Text:
    """One character, of what most of its slots are; of equals, the first."""
    slot = Counter(slots).most_common(1)[0][0]
    if slot is None:
        return Text(theme.glyphs.free, theme.role("free"))
    owners, is_live = slot
    if len(owners) > 1:
        return Text(str(len(owners)) if len(owners) < 10 else MANY, theme.role("shared"))
    style = theme.owner(owners[0])
    sign = capital(owners[0])
    return Text(sign, style) if is_live else Text(sign.lower(), style + theme.role("quiet"))


if __name__ == "__main__":  # python -m minipaged.viz.slot_map
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: slot_map(
            [
                Region(s.sequence, s.blocks, history.header.block_size, s.num_computed)
                for s in history.moment(index).running
            ],
            history.header.num_blocks * history.header.block_size,
            theme,
            width,
            20,
        )[0]
    )
