"""Places over time: a line per place, a mark per step or for some of them, and whose it was. Draws counts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from lessons.lesson08_continuous_batching.experiment import Stay
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, letter

_LABEL_CELLS = 8


def steps_per_mark(steps: int, width: int) -> int:
    """So many steps one mark must stand for."""
    return max(1, -(-steps // (width - _LABEL_CELLS)))


def place_chart(
    theme: Theme, title: str, stays: Sequence[Stay], places: int, steps: int, per_mark: int, width: int
) -> Picture:
    """Who had which place when.

    Args:
        theme: what the terminal can show.
        title: of this way.
        stays: at most one at a time in each place.
        places: how many there are.
        steps: of this way, counted from 1.
        per_mark: steps that one mark stands for, the same for charts that are to be compared.
        width: cells.
    """
    glyphs = theme.glyphs
    idle = places * steps - sum(stay.last - stay.first + 1 for stay in stays)
    lines = [heading(title, f"{steps} steps, {idle} idle", theme, width)]
    for place in range(places):
        here = [stay for stay in stays if stay.place == place]
        line = Text.assemble((f"place {place + 1} ", theme.role("quiet")))
        before: int | None = None
        for mark in range(-(-steps // per_mark)):
            middle = 1 + mark * per_mark + (per_mark - 1) // 2
            owner = next((stay.request for stay in here if stay.first <= middle <= stay.last), None)
            if owner is None:
                line.append(glyphs.free, theme.role("warning"))
            else:
                line.append(glyphs.decode if owner == before else letter(owner), theme.owner(owner))
            before = owner
        lines.append(line)
    return Picture(lines).fitted(width, len(lines))


def legend(theme: Theme, per_mark: int) -> Text:
    """What the marks say."""
    glyphs, quiet = theme.glyphs, theme.role("quiet")
    scale = f"   one mark is {per_mark} steps" if per_mark > 1 else ""
    return Text.assemble(
        (f"A{glyphs.decode}{glyphs.decode} A writes   ", quiet), (glyphs.free, theme.role("warning")),
        (f" an idle place{scale}", quiet),
    )  # fmt: skip
