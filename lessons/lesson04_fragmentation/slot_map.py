"""A service's pool as rows of characters, with who was refused. The rows are `minipaged/viz/slot_map.py`'s.

It draws what a `Service` with an open step shows, and knows nothing of how the slots were found.
"""

from __future__ import annotations

from rich.text import Text

from lessons.lesson04_fragmentation.service import Refusal, Service
from minipaged.viz.picture import Picture
from minipaged.viz.slot_map import Region, capital, slot_rows
from minipaged.viz.theme import Theme

__all__ = ["capital", "describe", "legend", "slot_map"]


def slot_map(title: str, service: Service, theme: Theme, *, slots_per_cell: int = 16, columns: int = 64) -> Picture:
    """A pool in an open step, with a heading, and a line about who was refused, if anybody was.

    Args:
        title: the memory's name.
        service: its step is open.
        theme: how things look.
        slots_per_cell: slots that one character stands for.
        columns: characters in a row.
    """
    memory = service.memory
    regions = [Region(sequence.id, table, memory.block_size, end) for sequence, table, end in service.regions()]
    facts = f"{service.scheduler.num_running} run, {memory.live_slots} slots live of {memory.held_slots} held"
    heading = Text.assemble((title, theme.role("title")), f"  {facts}")
    rows = slot_rows(regions, memory.total_slots, theme, slots_per_cell, columns)
    refusal = service.refusal()
    said = []
    if refusal is not None:
        said.append(Text(" " * (len(str(memory.total_slots)) + 1) + describe(refusal), theme.role("warning")))
    return Picture([heading, *rows, *said])


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
