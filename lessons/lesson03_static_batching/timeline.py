"""A static batch over time: a line per member, its prompt with the padding, then one mark per step. Draws counts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme, letter


def timeline(theme: Theme, prompts: Sequence[int], answers: Sequence[int], width: int) -> Picture:
    """Who works when.

    Args:
        theme: what the terminal can show.
        prompts: tokens of each member's prompt.
        answers: tokens of each member's answer; the first is drawn with the prompt.
        width: cells.
    """
    glyphs, longest, steps = theme.glyphs, max(prompts), max(answers)
    room = width - longest - 20
    per_mark = max(1, -(-steps // room))  # steps that one mark stands for
    lines = []
    for member, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        line = Text.assemble((letter(member), theme.owner(member)), " ")
        line.append(glyphs.prefill * prompt, theme.role("prefill"))
        line.append(glyphs.free * (longest - prompt), theme.role("warning"))
        line.append(f" {glyphs.wall} ", theme.role("quiet"))
        busy = round(answer / per_mark)
        line.append(glyphs.decode * busy, theme.role("decode"))
        line.append(glyphs.free * (round(steps / per_mark) - busy), theme.role("warning"))
        line.append(f"  {steps - answer:3} idle", theme.role("quiet"))
        lines.append(line)
    legend = Text.assemble(
        (glyphs.prefill, theme.role("prefill")), (" prompt  ", theme.role("quiet")),
        (glyphs.decode, theme.role("decode")), (" answer  ", theme.role("quiet")),
        (glyphs.free, theme.role("warning")), (" padded, or idle", theme.role("quiet")),
        (f"   one mark of an answer is {per_mark} steps" if per_mark > 1 else "", theme.role("quiet")),
    )  # fmt: skip
    return Picture([*lines, legend])
