"""The picture of lesson 7: which program of the grid reads which tiles of K and V. Knows counts; knows no kernel."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from lessons.lesson07_triton_kernel.counting import Setting
from minipaged.viz.theme import Theme, letter


@dataclass(frozen=True)
class GridPicture:
    """Both grids of a step, drawn with what the console can show that they are printed on."""

    step: Setting

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield grid_picture(self.step, Theme.of(console))


def grid_picture(step: Setting, theme: Theme) -> Group:
    """Two grids over the same cache: one program per query head, and grouped heads with split contexts.

    Each row is a walk along one KV head's tiles of one sequence; each letter a program that reads the tile.
    """
    lines = [Text(f"One program per query head: every tile is read by {step.group} of them", theme.role("title"))]
    program = 0
    for sequence, context in enumerate(step.contexts):
        for head in range(step.heads):
            label = _label(sequence, head // step.group, head % step.group == 0, f"query head {head}")
            cells = letter(program) * step.tiles(context)
            lines.append(label + Text(cells, theme.owner(program)))
            program += 1
    lines += [Text(f"{program} programs", theme.role("quiet")), Text()]

    title = f"Grouped heads, contexts split by {step.splits}: every tile is read by one program"
    lines.append(Text(title, theme.role("title")))
    program = idle = 0
    for sequence, context in enumerate(step.contexts):
        for kv_head in range(step.kv_heads):
            first = kv_head * step.group
            line = _label(sequence, kv_head, True, f"query heads {first}-{first + step.group - 1}")
            empty = []
            for split in range(step.splits):
                tiles = len(step.tiles_of_split(context, split))
                line.append(letter(program) * tiles, theme.owner(program))
                if not tiles:
                    empty.append(letter(program))
                program += 1
            if empty:
                line.append(f"   {', '.join(empty)}: no tile", theme.role("quiet"))
                idle += len(empty)
            lines.append(line)
    lines.append(Text(f"{program} programs, {idle} of them without a tile", theme.role("quiet")))
    return Group(*lines)


def _label(sequence: int, kv_head: int, is_first: bool, heads: str) -> Text:
    where = f"sequence {sequence}, KV head {kv_head}" if is_first else ""
    return Text(f"  {where:23} {heads:17}")
