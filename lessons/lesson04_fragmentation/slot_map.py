"""The slot map: a pool of slots as rows of characters, one for so many slots.

    A   most of these slots hold tokens of request A
    a   most of them are held by A and empty
    ·   most of them are free

It draws what a `Service` with an open step shows, and knows nothing of how the slots were found.
"""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from lessons.lesson04_fragmentation.service import Refusal, Service
from minipaged.viz.picture import Picture
from minipaged.viz.theme import LETTERS, Theme

_CAPITALS = 26
Slot = tuple[int, bool] | None  # whose, and whether a token is in it; None for a free one


def slot_map(title: str, service: Service, theme: Theme, *, slots_per_cell: int = 16, columns: int = 64) -> Picture:
    """A pool in an open step, with a heading, and a line about who was refused, if anybody was.

    Args:
        title: the memory's name.
        service: its step is open.
        theme: how things look.
        slots_per_cell: slots that one character stands for.
        columns: characters in a row.
    """
    slots: list[Slot] = [None] * service.memory.total_slots
    size = service.memory.block_size
    for sequence, table, end in service.regions():
        held = [block * size + offset for block in table for offset in range(size)]
        for position, slot in enumerate(held):
            slots[slot] = (sequence.id, position < end)
    memory = service.memory
    facts = f"{service.scheduler.num_running} run, {memory.live_slots} slots live of {memory.held_slots} held"
    lines = [Text.assemble((title, theme.role("title")), f"  {facts}")]
    label = len(str(len(slots)))
    for first in range(0, len(slots), slots_per_cell * columns):
        row = Text.assemble((f"{first:{label}} ", theme.role("quiet")))
        for start in range(first, min(first + slots_per_cell * columns, len(slots)), slots_per_cell):
            row.append_text(_cell(slots[start : start + slots_per_cell], theme))
        lines.append(row)
    refusal = service.refusal()
    if refusal is not None:
        lines.append(Text(" " * (label + 1) + describe(refusal), theme.role("warning")))
    return Picture(lines)


def describe(refusal: Refusal) -> str:
    """One line: who, what it needs, what there is."""
    return (
        f"refused {capital(refusal.sequence)}: needs {refusal.needed} slots, {refusal.free} free, "
        f"the largest hole {refusal.largest_hole}"
    )


def legend(theme: Theme, slots_per_cell: int = 16) -> Text:
    """What the characters mean."""
    free = theme.glyphs.free
    says = f"{slots_per_cell} slots a character: A hold tokens of A, a are A's and empty, {free} are free"
    return Text(says, theme.role("quiet"))


def capital(sequence: int) -> str:
    """The letter of a sequence: A to Z, and round again. Small letters mean something else here."""
    return LETTERS[sequence % _CAPITALS]


def _cell(slots: list[Slot], theme: Theme) -> Text:
    """One character, of what most of its slots are; of equals, the first."""
    slot = Counter(slots).most_common(1)[0][0]
    if slot is None:
        return Text(theme.glyphs.free, theme.role("free"))
    sequence, is_live = slot
    style = theme.owner(sequence)
    return Text(capital(sequence), style) if is_live else Text(capital(sequence).lower(), style + theme.role("quiet"))
