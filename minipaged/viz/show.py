"""show: draws a picture of the example run on this terminal, so that each file here can show itself.

python -m minipaged.viz.block_map
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from minipaged.viz.example import example_trace
from minipaged.viz.history import History
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme


def show(draw: Callable[[History, int, Theme, int], Picture]) -> None:
    """Print what `draw(history, index, theme, width)` makes of the example's most eventful step."""
    console = Console()
    history = History(example_trace())
    console.print(draw(history, eventful_step(history), Theme.of(console), console.width))


def eventful_step(history: History) -> int:
    """The step in which the most kinds of changes happened; the first of several."""
    kinds = [len({change.kind for change in history.facts(index).changes}) for index in range(len(history))]
    return kinds.index(max(kinds))


if __name__ == "__main__":
    from minipaged.viz.dashboard import View, dashboard

    show(lambda history, index, theme, width: dashboard(history, index, View(), width, 40, theme))
