"""The lesson's picture: what a step moves, and what it computes, as two bars on one line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from lessons.lesson01_token_loop.experiment import StepFigures
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme

BAR_CELLS = 24


def step_picture(steps: Sequence[StepFigures], theme: Theme) -> Picture:
    """A line for each step of one model: bytes at the left, FLOPs at the right. Bars of one kind have one scale."""
    most_bytes = max(step.counted_bytes for step in steps)
    most_flops = max(step.counted_flops for step in steps)
    glyphs = theme.glyphs
    lines = [Text(f"{'':10}{'bytes moved':{BAR_CELLS + 9}}operations", theme.role("title"))]
    for step in steps:
        kv_cells = _cells(step.kv_bytes, most_bytes)
        weight_cells = _cells(step.counted_bytes, most_bytes) - kv_cells
        flops = f"{step.counted_flops / 1e9:.2f} GFLOP"
        line = Text(f"{step.name:10}")
        line.append(glyphs.bar * weight_cells, theme.role("decode"))
        line.append(glyphs.bar_half * kv_cells, theme.role("recompute"))
        line.append(f" {step.counted_bytes / 1e6:.0f} MB".ljust(BAR_CELLS + 9 - weight_cells - kv_cells))
        line.append(glyphs.bar * _cells(step.counted_flops, most_flops), theme.role("prefill"))
        line.append(f" {flops}")
        lines.append(line)
    lines.append(Text(f"{'':10}{glyphs.bar} weights  {glyphs.bar_half} K and V", theme.role("quiet")))
    return Picture(lines)


def _cells(part: float, whole: float) -> int:
    """At least one, so that little is not nothing."""
    return max(1, round(BAR_CELLS * part / whole))
