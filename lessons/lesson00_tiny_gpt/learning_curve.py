"""The learning curve: bits per token against steps, with a line for each model that does not learn any more.

The scale is logarithmic, two lines to a halving: on an even one, all that matters would lie in the lowest line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme

NUM_COLUMNS = 20
COLUMN_CELLS = 3
LINES_PER_HALVING = 2


def means(losses: Sequence[float], num_columns: int = NUM_COLUMNS) -> list[float]:
    """Losses of neighbouring steps, averaged into at most so many columns."""
    size = math.ceil(len(losses) / num_columns)
    pieces = [losses[first : first + size] for first in range(0, len(losses), size)]
    return [sum(piece) / len(piece) for piece in pieces]


def learning_curve(theme: Theme, losses: Sequence[float], levels: Sequence[tuple[str, float]]) -> Picture:
    """Draws it.

    Args:
        theme: how things look.
        losses: bits per token of each step.
        levels: name and bits per token of each line, the highest first; the first is the top of the picture.
    """
    top = levels[0][1]

    def line_of(bits: float) -> int:
        return max(0, math.floor(LINES_PER_HALVING * math.log2(top / bits)))

    names: dict[int, list[str]] = {}
    for name, bits in levels:
        names.setdefault(line_of(bits), []).append(f"{bits:.2f} {name}")
    columns = [line_of(bits) for bits in means(losses)]
    lines = [Text("bits per token", theme.role("quiet"))]
    for line in range(max(*names, *columns) + 1):
        tick = "" if line % 2 else f"{top / 2 ** (line / LINES_PER_HALVING):.2g}"
        text = Text(f"{tick:>5} {theme.glyphs.wall}")
        rest = theme.glyphs.waits_again if line in names else " "
        for column in columns:
            is_here = column == line
            style = theme.owner(0) if is_here else theme.role("quiet")
            text.append((theme.glyphs.bar if is_here else rest) * COLUMN_CELLS, style)
        if line in names:
            text.append(f" {', '.join(names[line])}", theme.role("title"))
        lines.append(text)
    axis = f"{theme.glyphs.rule * len(columns) * COLUMN_CELLS}"
    lines.append(Text(f"{'':5} {theme.glyphs.wall}{axis}", theme.role("quiet")))
    steps = f"{len(losses)} steps"
    lines.append(Text(f"{'':6}1{steps:>{len(columns) * COLUMN_CELLS}}", theme.role("quiet")))
    return Picture(lines)
