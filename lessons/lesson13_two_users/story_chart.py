"""The story's pictures: who is served when; the pool on one line; every table with the count of each of its blocks."""

from __future__ import annotations

from collections.abc import Iterable

from rich.style import Style
from rich.text import Text

from lessons.lesson13_two_users.service import NAMES, Service
from minipaged.trace import BlockState, Moment
from minipaged.viz.changes import BlockChange, marks
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, letter

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LABEL = 3


def timeline(theme: Theme, title: str, service: Service, longest: int, width: int) -> Picture:
    """One line for each answer, from its user's coming to its end.

    Args:
        theme: how things look.
        title: of the run.
        service: the run.
        longest: steps of the longest run that is drawn beside this one; both get its scale.
        width: in cells.
    """
    scale = -(-longest // (width - _LABEL))
    glyphs = theme.glyphs
    lines = [heading(title, f"{service.steps} steps; together they waited {service.waits}", theme, width)]
    for fare in service.fares:
        line = Text(f"{fare.name}  ", style=_style(theme, fare.name))
        for first in range(0, service.steps, scale):
            steps = range(first, min(first + scale, service.steps))
            phases = {fare.phases.get(step, "waits" if fare.came <= step <= fare.ended else "") for step in steps}
            kind = next((kind for kind in ("prefill", "recompute", "decode", "waits") if kind in phases), "")
            shown = {
                "prefill": glyphs.prefill,
                "recompute": glyphs.recompute,
                "decode": glyphs.decode,
                "waits": glyphs.waits,
            }
            line.append(shown.get(kind, " "), theme.role("quiet" if kind in ("", "waits") else kind))
        line.rstrip()
        lines.append(line)
    return Picture(lines)


def timeline_legend(theme: Theme) -> Text:
    """What its signs mean."""
    glyphs = theme.glyphs
    signs = (
        f"{glyphs.waits} waits  {glyphs.prefill} prompt  {glyphs.recompute} prompt, computed again  "
        f"{glyphs.decode} one token a step"
    )
    return Text(signs, theme.role("quiet"))


def pool_row(theme: Theme, moment: Moment) -> Text:
    """The device pool on one line, two characters for a block: who holds it, and how full it is."""
    line = Text()
    for block in moment.device_blocks:
        who, style = _who(theme, block)
        fill = " " if not block.holders and block.node is None else theme.fill(block.fill, moment.header.block_size)
        line.append(who + fill, style)
    return line


def tables(theme: Theme, moment: Moment, changes: Iterable[BlockChange], width: int) -> Picture:
    """Every running sequence's block table in the order of its text; a count above 1 stands behind its block."""
    kinds = marks(changes, "device")
    counts = {block.block: len(block.holders) for block in moment.device_blocks}
    lines = []
    for state in moment.running:
        line = Text(f"{NAMES[state.sequence]}  ", style=_style(theme, NAMES[state.sequence]) + Style(bold=True))
        for block in state.blocks:
            is_shared = counts[block] > 1
            count = str(counts[block]) if is_shared else ""
            line.append(
                f"{block}{count.translate(_RAISED) if theme.unicode else is_shared * '*' + count}",
                theme.role("shared") if is_shared else _style(theme, NAMES[state.sequence]),
            )
            line.append(theme.glyphs.marks[kinds[block]] if block in kinds else "", theme.role("quiet"))
            line.append(" ")
        end = state.num_computed - (len(state.blocks) - 1) * moment.header.block_size
        line.append(f"({end}/{moment.header.block_size})", theme.role("quiet"))
        lines.append(line)
    return Picture(lines).fitted(width, len(lines))


def _who(theme: Theme, block: BlockState) -> tuple[str, Style]:
    if not block.holders:
        is_free = block.node is None
        glyph = theme.glyphs.free if is_free else theme.glyphs.evictable
        return glyph, theme.role("free" if is_free else "evictable")
    if len(block.holders) == 1:
        return letter(block.holders[0]), theme.owner(block.holders[0])
    return str(len(block.holders)), theme.role("shared")


def _style(theme: Theme, name: str) -> Style:
    return theme.owner(NAMES.index(name))
