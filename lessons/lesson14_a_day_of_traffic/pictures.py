"""Pictures of lesson 14: requests along a line of time, and latency over rate, both as text."""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import ceil

from rich.text import Text

from lessons.lesson14_a_day_of_traffic.figures import Curve, Traffic
from lessons.lesson14_a_day_of_traffic.request_log import Visit
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme, letter

TIME_CELLS = 70
RATE_CELLS, LATENCY_ROWS = 68, 10
TOP = 0.2  # of the latency axis, in seconds a token
LETTERS = {"static": "S", "reserve-max": "M", "reserve-pow2": "2", "reserve-oracle": "O", "paged": "P"}


def visits_picture(title: str, visits: Items[Visit], seconds: float, theme: Theme) -> Picture:
    """Each request's wait and its answer, one line each.

    Args:
        title: above them.
        visits: who came.
        seconds: that the width must have room for.
        theme: how things look.
    """
    glyphs = theme.glyphs
    cell = ceil(10 * seconds / TIME_CELLS) / 10  # seconds that a character stands for, to a tenth
    lines = [Text.assemble((title, theme.role("title")))]
    for number, visit in enumerate(visits):
        came, began, ended = (int(moment / cell) for moment in (visit.arrival, visit.began, visit.ended))
        lines.append(
            Text.assemble(
                (f"{letter(number)} ", theme.owner(number)),
                (f"{visit.num_prompt:4} +{visit.num_output:4}  ", theme.role("quiet")),
                " " * came,
                (glyphs.waits * (began - came), theme.role("quiet")),
                (glyphs.decode * max(1, ended - began), theme.owner(number)),
            )
        )
    ruler = "".join(f"{tick * cell:<10.0f}" for tick in range(0, TIME_CELLS, 10))
    lines.append(Text(f"{'':14}{ruler} s", theme.role("quiet")))
    return Picture(lines)


def latency_picture(traffic: Traffic, limit: float, theme: Theme) -> Picture:
    """Mean normalised latency over the request rate, a letter for each policy."""
    right = max(curve.points[-1].rate for curve in traffic.curves)
    rows = [[" "] * RATE_CELLS for _ in range(LATENCY_ROWS)]
    limit_row = _row(limit)
    rows[limit_row] = [theme.glyphs.rule] * RATE_CELLS
    for curve in traffic.curves:
        last: int | None = None
        for column in range(RATE_CELLS):
            latency = _latency_at(curve, (column + 0.5) / RATE_CELLS * right)
            if latency is None:
                continue
            row = _row(latency)
            # A steep line goes through all rows between two columns.
            for between in range(row, last if last is not None and last > row else row + 1):
                if between >= 0:
                    rows[between][column] = LETTERS[curve.policy]
            last = row
    lines = [Text(f"{traffic.name}: ms a token, mean, over requests/s", theme.role("title"))]
    for number, cells in enumerate(rows):
        label = f"{1e3 * TOP * (1 - number / LATENCY_ROWS):4.0f} "
        shown = Text.assemble((label, theme.role("quiet")), (theme.glyphs.wall, theme.role("quiet")))
        for character in cells:
            policy = next((i for i, mark in enumerate(LETTERS.values()) if mark == character), None)
            shown.append(character, theme.role("quiet") if policy is None else theme.owner(policy))
        lines.append(shown)
    ruler = "".join(f"{tick / RATE_CELLS * right:<17.2f}" for tick in range(0, RATE_CELLS, 17))
    lines.append(Text(f"   0 {theme.glyphs.wall}{ruler}", theme.role("quiet")))
    legend = "   ".join(f"{mark} {policy}" for policy, mark in LETTERS.items())
    lines.append(Text(f"      {legend}", theme.role("quiet")))
    return Picture(lines)


def _row(latency: float) -> int:
    """From the top; below 0 it is above the picture."""
    return int((1 - latency / TOP) * LATENCY_ROWS) if latency < TOP else -1


def _latency_at(curve: Curve, rate: float) -> float | None:
    """On a straight line between two points; None outside of them."""
    for left, right in zip(curve.points, curve.points[1:], strict=False):
        if left.rate <= rate <= right.rate:
            way = (rate - left.rate) / (right.rate - left.rate)
            return left.normalised + way * (right.normalised - left.normalised)
    return None
