"""The two pools, turn by turn: what each block holds, and which copies will go first. Draws what it is told."""

from __future__ import annotations

from collections.abc import Sequence as Items

from rich.style import Style
from rich.text import Text

from lessons.lesson12_swap_manager.experiment import Turn
from minipaged.viz.picture import Picture
from minipaged.viz.theme import LETTERS, Theme


def pool_chart(theme: Theme, turns: Items[Turn]) -> Picture:
    """One line for each turn: both pools after it, the queue, and what it cost."""
    device, host, wall = len(turns[0].device), len(turns[0].host), theme.glyphs.wall
    head = Text(
        f"turn  {f'device ({device})':{4 * device}}{wall} {f'host ({host})':{4 * host}}{wall} "
        f"{'next to go':12}  found  computed  out  in  lost",
        theme.role("quiet"),
    )
    return Picture([head, *(_line(theme, turn) for turn in turns), Text(), _legend(theme)])


def _line(theme: Theme, turn: Turn) -> Text:
    wall = f"{theme.glyphs.wall} "
    line = Text.assemble((f"{turn.name}     ", _style(theme, turn.name)))
    for what in turn.device:
        _cell(line, theme, what)
    line.append(wall, theme.role("quiet"))
    for block, what in enumerate(turn.host):
        _cell(line, theme, what, clean=bool(what) and block not in turn.sole)
    line.append(wall, theme.role("quiet"))
    for block in turn.queue[:3]:
        _cell(line, theme, turn.host[block])
    line.append(" " * (4 * (3 - len(turn.queue[:3]))))
    line.append(f"{turn.found:7}{turn.computed:10}{turn.blocks_out:5}{turn.blocks_in:4}{turn.dropped:6}")
    return line


def _cell(line: Text, theme: Theme, what: str, *, clean: bool = False) -> None:
    if not what:
        line.append(f"{theme.glyphs.free}   ", theme.role("free"))
        return
    line.append(what, _style(theme, what[0]))
    line.append(f"{theme.glyphs.clean if clean else ' '} ", theme.role("quiet"))


def _style(theme: Theme, name: str) -> Style:
    return theme.owner(LETTERS.index(name))


def _legend(theme: Theme) -> Text:
    return Text(
        f"A0 first block of A   {theme.glyphs.clean} on the device, too   {theme.glyphs.free} nothing kept",
        theme.role("quiet"),
    )
