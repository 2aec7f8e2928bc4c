"""Latency chart: a latency over the request rate, one line for each policy, as an SVG that asks nobody for anything.

A line that leaves the top is cut where it does, and one that never comes below it is said to be above. It knows names
and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 170, 40, 50
# Told apart on white and on black, and, by their dashes, without colour.
_COLOURS = ("#d1495b", "#c77d0a", "#7a8b00", "#2a9d5c", "#1f8fa8", "#3d6fd6", "#8d5fd3", "#c04fa4", "#6b7a8f")
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
Points = Sequence[tuple[float, float]]  # (rate, seconds), by rate


def latency_chart(lines: Mapping[str, Points], title: str, latency: str, top: float | None = None) -> str:
    """Draw.

    Args:
        lines: policy -> its points.
        title: above the chart.
        latency: what the upward axis shows, its unit included.
        top: of that axis; None takes four times the least point, or the largest if that is less.

    Raises:
        ValueError: there is no point.
    """
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError("latency_chart: there is no point to draw")
    latencies = [value for _, value in points]
    top = top or min(max(latencies), 4 * max(min(latencies), 1e-9)) * 1.05 or 1.0
    right = max(rate for rate, _ in points) * 1.03
    plot_width, plot_height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(rate: float, value: float) -> tuple[float, float]:
        return _LEFT + rate / right * plot_width, _TOP + (1 - value / top) * plot_height

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="{escape(title)}">',
        "<style>text{fill:#24303c}.g{stroke:#24303c;stroke-opacity:.15}"
        "@media(prefers-color-scheme:dark){text{fill:#d8dee9}.g{stroke:#d8dee9}}</style>",
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for tick in _ticks(top):
        _, y = place(0, tick)
        parts.append(f'<line class="g" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(right):
        x, _ = place(tick, 0)
        parts.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    middle = _LEFT + plot_width / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">requests per second</text>')
    upward = _TOP + plot_height / 2
    parts.append(
        f'<text x="18" y="{upward}" text-anchor="middle" transform="rotate(-90 18 {upward})">{escape(latency)}</text>'
    )
    for number, (name, line) in enumerate(lines.items()):
        style = f'stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-dasharray="{_DASHES[number % len(_DASHES)]}"'
        shown = _cut(line, top)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in shown))
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="2.2" {style}/>')
        y = _TOP + 10 + 20 * number
        x = WIDTH - _RIGHT + 14
        parts.append(f'<line x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}" stroke-width="2.2" {style}/>')
        parts.append(f'<text x="{x + 34}" y="{y + 4}">{escape(name)}{"" if shown else " (above)"}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cut(line: Points, top: float) -> list[tuple[float, float]]:
    """The line up to where it crosses the top."""
    shown: list[tuple[float, float]] = []
    for rate, value in line:
        if value <= top:
            shown.append((rate, value))
            continue
        if shown:
            last_rate, last = shown[-1]
            shown.append((last_rate + (rate - last_rate) * (top - last) / (value - last), top))
        break
    return shown


def _ticks(end: float) -> list[float]:
    """Round numbers from 0, four to eight of them."""
    power = 10.0 ** floor(log10(end))
    step = next(step * power / 10 for step in (1, 2, 5, 10, 20) if end / (step * power / 10) <= 8)
    return [round(i * step, 12) for i in range(int(end / step) + 1)]
