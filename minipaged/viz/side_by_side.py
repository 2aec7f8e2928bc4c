"""Two memories side by side: whose each slot is, who runs, who waits and why, and at last the words in which they part.

It draws what it is given of each side, and knows no engine.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence as Items
from dataclasses import dataclass

from rich.text import Text

from minipaged.trace import StepRecord
from minipaged.viz.picture import Picture, heading
from minipaged.viz.slot_map import Region, capital, legend, slot_map
from minipaged.viz.theme import Theme, many, with_names

_GAP = 2  # cells between the halves
_LINES_BESIDE_SLOTS = 7  # a half's heading and three facts, the legend, an empty line before it and before the verdict


@dataclass(frozen=True, slots=True)
class Half:
    """One side of the picture.

    Args:
        name: of the memory.
        record: the step's.
        regions: what each running sequence holds.
        waiting: ids of those that wait, the first in the line first.
        num_slots, held_slots, live_slots: of the memory.
    """

    name: str
    record: StepRecord
    regions: Items[Region]
    waiting: Items[int]
    num_slots: int
    held_slots: int
    live_slots: int


def side_by_side(left: Half, right: Half, verdict: str, theme: Theme, width: int, height: int) -> Picture:
    """Both halves beside each other, and below them the verdict.

    Args:
        left, right: of the same step, with as many slots.
        verdict: where they part and why; "" as long as they do not.
        theme: how things look.
        width, height: cells.
    """
    said = [Text(line, theme.role("warning")) for line in textwrap.wrap(theme.text(with_names(verdict)), width)]
    half_width = (width - _GAP) // 2
    rows = max(height - len(said) - _LINES_BESIDE_SLOTS, 1)
    first, per_cell = _half(left, theme, half_width, rows)
    second, _ = _half(right, theme, half_width, rows)
    lines = [*first.beside(second, half_width, " " * _GAP), Text(), legend(theme, per_cell)]
    return Picture([*lines, *([Text(), *said] if said else [])]).fitted(width, height)


def _half(half: Half, theme: Theme, width: int, rows: int) -> tuple[Picture, int]:
    utilisation = f"{half.live_slots / half.held_slots:.0%} of the held" if half.held_slots else "none held"
    facts = (f"{half.live_slots} live, {utilisation}", f"{half.live_slots} live")
    slots, per_cell = slot_map(half.regions, half.num_slots, theme, width, rows)
    runs = f"{many(len(half.regions), 'sequence')} run: " + " ".join(capital(r.sequence) for r in half.regions)
    waits = f"{len(half.waiting)} wait"
    if half.waiting:
        waits += ": " + " ".join(map(capital, half.waiting)) + f" ({half.record.waiting_cause})"
    lines = [
        heading(f"{half.name}, step {half.record.step}", facts, theme, width),
        *slots,
        Text(theme.cut(runs if half.regions else "nobody runs", width)),
        Text(theme.cut(waits, width), theme.role("quiet")),
        Text(theme.cut(f"{half.held_slots} of {half.num_slots} slots held", width), theme.role("quiet")),
    ]
    return Picture(lines), per_cell
