"""The timeline: a row for each sequence, a column for each step: prefill, recompute, decode, waiting, preempted."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items

from rich.style import Style
from rich.text import Text

from minipaged.viz.history import History
from minipaged.viz.picture import Picture, flowed, heading
from minipaged.viz.theme import Theme, name

_WORDS = {
    "prefill": "prefill",
    "recompute": "recompute",
    "decode": "decode",
    "preempt": "preempted",
    "preempted": "waits again",
    "waits": "waits",
}


_HELD_UP = ("waits", "preempt", "preempted")


def timeline(
    history: History, index: int, theme: Theme, width: int, height: int, *, follow: int | None = None
) -> Picture:
    """The steps around the `index`-th, which is marked; newer ones only where they were recorded already.

    Where there are more sequences than rows, those that are there at the marked step come first, as `_by_need` says.
    """
    label = 4
    columns = max(min(width - label, len(history)), 1)
    first = max(0, min(index - columns * 3 // 4, len(history) - columns))
    steps = [history.facts(i) for i in range(first, first + columns)]
    legend = flowed([_sign(kind, theme) for kind in _WORDS], width)
    now = steps[index - first].phases
    rows = sorted({sequence for facts in steps for sequence in facts.phases})
    room = height - 2 - len(legend)
    if room < 3:
        legend, room = [], height - 2
    num_rows = len(rows)
    if num_rows > room:
        queue = [state.sequence for state in history.moment(index).waiting]
        order = _by_need(rows, now, queue)
        rows = sorted(sorted(order, key=lambda row: row != follow)[: max(room, 0)])
    facts_line = f"steps {steps[0].record.step} to {steps[-1].record.step}"
    if num_rows > len(rows):
        facts_line = f"{len(rows)} of {num_rows} sequences, {facts_line}"
    ruler = _ruler(steps[index - first].record.step, index - first, label)
    lines = [heading("timeline", facts_line, theme, width), ruler]
    for sequence in rows:
        style = theme.owner(sequence) + Style(bold=True)
        line = Text.assemble((f"{name(sequence):{label}}", style))
        for i, facts in enumerate(steps):
            kind = facts.phases.get(sequence)
            glyph, role = _glyph(kind, theme)
            if i != index - first:
                line.append(glyph, theme.role(role))
            elif kind is None:
                line.append(theme.glyphs.wall, theme.role("quiet"))
            else:
                line.append(glyph, theme.role(role) + Style(reverse=True))
        if follow is not None:
            line.stylize(Style(bold=True) if sequence == follow else Style(dim=True))
        lines.append(line)
    return Picture([*lines, *legend]).fitted(width, height)


def _by_need(rows: Items[int], now: Mapping[int, str], queue: Items[int]) -> list[int]:
    """Who is first in the queue, who was just preempted, who is computed (the newest first), who waits, in the queue's
    order, and the newest of those that are not there.
    """

    def need(row: int) -> tuple[int, int]:
        if queue and row == queue[0]:
            return 0, 0
        if now.get(row) == "preempt":
            return 1, -row
        if row in now and now[row] not in _HELD_UP:
            return 2, -row
        return (3, queue.index(row)) if row in queue else (4, -row)

    return sorted(rows, key=need)


def _ruler(step: int, column: int, label: int) -> Text:
    """The number of the marked step, above its column."""
    number = str(step)
    place = label + column
    if place >= len(number):
        return Text(" " * (place - len(number)) + number + "v")
    return Text(" " * place + "v" + number)


def _glyph(kind: str | None, theme: Theme) -> tuple[str, str]:
    """(glyph, role)"""
    glyphs = theme.glyphs
    return {
        "prefill": (glyphs.prefill, "prefill"),
        "recompute": (glyphs.recompute, "recompute"),
        "decode": (glyphs.decode, "decode"),
        "waits": (glyphs.waits, "quiet"),
        "preempt": (glyphs.preempted, "preempt"),
        "preempted": (glyphs.waits_again, "warning"),
        None: (" ", "plain"),
    }[kind]


def _sign(kind: str, theme: Theme) -> Text:
    glyph, role = _glyph(kind, theme)
    return Text.assemble((glyph, theme.role(role)), (f" {_WORDS[kind]}", theme.role("quiet")))


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(lambda history, index, theme, width: timeline(history, index, theme, width, 20))
