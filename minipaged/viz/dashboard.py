"""dashboard: everything there is to see of one step, for a width and a height.

It puts the panels together and draws none of them; it takes a trace and nothing else, so live and replay look alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from minipaged.trace import Trace
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme

PANELS = ("overview", "blocks", "tables", "timeline", "tree", "life")


@dataclass(frozen=True, slots=True)
class View:
    """What is selected.

    Args:
        panel: one of `PANELS`.
        sequence: id of the sequence that is followed: everything else steps back.
        block: number of the device block whose life is wanted.
    """

    panel: str = "overview"
    sequence: int | None = None
    block: int | None = None


def dashboard(trace: Trace, index: int, view: View, width: int, height: int, theme: Theme) -> Picture:
    """The `index`-th step of a trace.

    Args:
        trace: a run, recorded or being recorded. A `History` over it saves work when it is drawn again and again.
        index: from 0; a trace without steps shows that it has none.
        view: what is selected.
        width, height: what the picture takes at most, in cells; made for 60 × 20 and above.
        theme: how things look.

    Returns:
        A renderable; its `lines` are `rich.text.Text`, none wider than `width`.
    """
    moment = trace.moment(index)
    line = Text(f"step {moment.record.step}  {len(moment.running)} running  {len(moment.waiting)} waiting")
    return Picture([line]).fitted(width, height)
