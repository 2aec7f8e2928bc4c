"""The picture of lesson 6: where one sequence's blocks lie, in which order they are read, and m and l as they are.

It draws a `Walk` and computes nothing.
"""

from __future__ import annotations

from rich.text import Text

from lessons.lesson06_paged_attention.experiment import Walk
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme

WIDTH = 78
_PER_LINE = 12
_BAR = 14


def picture(seen: Walk, theme: Theme) -> Picture:
    """The pool, then a line for each block that is read."""
    lines = [heading("the pool", f"{seen.num_blocks} blocks of {seen.block_size} keys", theme, WIDTH)]
    lines += _pool(seen, theme)
    lines += [Text(), heading("the loop", "in the order of the block table, not of the pool", theme, WIDTH)]
    lines.append(Text("read  block  keys    largest score       m   exp(m-m')       l", theme.role("quiet")))
    lines += _turns(seen, theme)
    return Picture(lines)


def _pool(seen: Walk, theme: Theme) -> list[Text]:
    """Each block with the turn in which it is read; the others are somebody else's."""
    turn_of = {turn.physical: number for number, turn in enumerate(seen.turns, 1)}
    lines = []
    for start in range(0, seen.num_blocks, _PER_LINE):
        line = Text()
        for block in range(start, min(start + _PER_LINE, seen.num_blocks)):
            line.append(f"{block:3d}", theme.role("quiet"))
            if block in turn_of:
                line.append(f"[{turn_of[block]}]", theme.owner(0) + theme.role("shared"))
            else:
                line.append(f" {theme.glyphs.free} ", theme.role("free"))
        lines.append(line)
    return lines


def _turns(seen: Walk, theme: Theme) -> list[Text]:
    largest_total = max(turn.total for turn in seen.turns)
    lines = []
    for number, turn in enumerate(seen.turns, 1):
        keys = f"{turn.first}-{turn.first + turn.keys - 1}"
        rises = turn.rescale < 1
        line = Text.assemble(
            (f" [{number}]", theme.owner(0) + theme.role("shared")),
            f"  {turn.physical:5d}  {keys:<6}  {turn.largest:13.2f}  ",
            (f"{turn.maximum:6.2f}", theme.role("new" if rises else "plain")),
            (f"  {turn.rescale:10.2f}", theme.role("new" if rises else "quiet")),
            f"  {turn.total:6.2f}  ",
            (theme.glyphs.bar * round(_BAR * turn.total / largest_total), theme.owner(0)),
        )
        lines.append(line)
    return lines
