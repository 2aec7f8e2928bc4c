"""Steps as bars: how many tokens of those who write, and how many of the prompt, each step computes. Draws counts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from lessons.lesson09_chunked_prefill.experiment import Step
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme

_BESIDE_CELLS = 22  # the step's number, and the figures behind the bar


def step_bars(
    theme: Theme, title: str, facts: str, steps: Sequence[Step], budget: int | None, most: int, width: int
) -> Picture:
    """One line per step.

    Args:
        theme: what the terminal can show.
        title, facts: of the heading.
        steps: to be shown.
        budget: drawn as a wall, if there is one.
        most: tokens of the longest bar there can be, the same for pictures that are to be compared.
        width: cells.
    """
    glyphs, room = theme.glyphs, width - _BESIDE_CELLS
    lines = [heading(title, facts, theme, width)]
    for step in steps:
        decode, prompt = (max(1, round(n * room / most)) if n else 0 for n in (step.decode, step.prompt))
        line = Text.assemble((f"step {step.number:3} ", theme.role("quiet")))
        line.append(glyphs.decode * decode, theme.role("decode"))
        line.append(glyphs.prefill * prompt, theme.role("prefill"))
        if budget is not None:
            line.append(" " * (round(budget * room / most) + 1 - decode - prompt))
            line.append(glyphs.wall, theme.role("warning"))
        line.append(f" {step.decode} + {step.prompt}", theme.role("quiet"))
        lines.append(line)
    return Picture(lines).fitted(width, len(lines))


def legend(theme: Theme) -> Text:
    """What the marks say."""
    glyphs, quiet = theme.glyphs, theme.role("quiet")
    return Text.assemble(
        (glyphs.decode, theme.role("decode")), (" tokens of those who write  ", quiet),
        (glyphs.prefill, theme.role("prefill")), (" of the newcomer  ", quiet),
        (glyphs.wall, theme.role("warning")), (" the budget", quiet),
    )  # fmt: skip
