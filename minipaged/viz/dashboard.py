"""dashboard: everything there is to see of one step, for a width and a height.

It puts the panels together and draws none of them; it takes a trace and nothing else, so live and replay look alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

from rich.style import Style
from rich.text import Text

from minipaged.trace import Trace
from minipaged.viz.block_map import BlockMap, map_lines
from minipaged.viz.changes import what_changed
from minipaged.viz.gauges import gauges, tokens_per_second
from minipaged.viz.history import History
from minipaged.viz.life import block_life, sequence_life
from minipaged.viz.picture import Picture, Section, stacked
from minipaged.viz.sequence_view import block_tables, queue
from minipaged.viz.step_view import composition
from minipaged.viz.theme import Theme, name
from minipaged.viz.timeline import timeline
from minipaged.viz.tree_view import prefix_tree

PANELS = ("overview", "blocks", "tables", "timeline", "tree", "life")
TWO_COLUMNS = 110  # from this width on, the overview has two
ROOM_FOR_ALL = 40  # from this height on, that of one column has room for all its sections


@dataclass(frozen=True, slots=True)
class View:
    """What is selected.

    Args:
        panel: one of `PANELS`.
        sequence: id of the sequence that is followed: everything else steps back.
        block: number of the device block whose life is wanted.

    Raises:
        ValueError: there is no such panel.
    """

    panel: str = "overview"
    sequence: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        if self.panel not in PANELS:
            raise ValueError(f"View: panel is {self.panel!r}; it must be one of {', '.join(PANELS)}")


def dashboard(trace: Trace, index: int, view: View, width: int, height: int, theme: Theme) -> Picture:
    """The `index`-th step of a trace.

    Args:
        trace: a run, recorded or being recorded. A `History` over it, kept from one call to the next, saves work.
        index: from 0.
        view: what is selected.
        width: what the picture takes at most, in cells; made for 60 and above.
        height: what it takes at most, in lines; made for 20 and above.
        theme: how things look.

    Returns:
        A renderable; its `lines` are `rich.text.Text`, none wider than `width`.

    Raises:
        IndexError: there is no such step.
    """
    history = trace if isinstance(trace, History) else History(trace)
    board = _Board(history, index, view, theme)
    head = board.head(width)
    body = getattr(board, view.panel)(width, height - len(head))
    return Picture([*head, *body]).fitted(width, height)


class _Board:
    """The parts of one dashboard, each a function of the room that it gets."""

    def __init__(self, history: History, index: int, view: View, theme: Theme) -> None:
        self.history = history
        self.index = index
        self.view = view
        self.theme = theme
        self.moment = history.moment(index)
        self.changes = history.facts(index).changes

    def head(self, width: int) -> list[Text]:
        """Which step, which panel, and the run in a few numbers."""
        theme, record = self.theme, self.moment.record
        first = Text.assemble((f"step {record.step}", Style(bold=True)))
        ends = [self.history.facts(index).record.step for index in (0, len(self.history) - 1)]  # it may begin late
        first.append(f" of {ends[0]} to {ends[1]}  ", theme.role("quiet"))
        panels = list(PANELS)
        if first.cell_len + len(" ".join(PANELS)) + 2 > width:  # no room for all: the next ones, as tab turns to them
            place = PANELS.index(self.view.panel)
            panels = [*PANELS[place:], *PANELS[:place]]
        for panel in panels:
            chosen = panel == self.view.panel
            if chosen or first.cell_len + len(panel) <= width:
                first.append(f"[{panel}]" if chosen else panel, Style(bold=True) if chosen else theme.role("quiet"))
                first.append(" ")
        second = Text.assemble(
            (f"{record.num_running} running", theme.role("decode")),
            (f"  {record.num_waiting} waiting", theme.role("warning" if record.num_waiting else "quiet")),
            f"  {tokens_per_second(self.history, self.index):.0f} tokens/s of engine time",
        )
        if self.view.sequence is not None:
            second.append(f"  following {name(self.view.sequence)}", theme.owner(self.view.sequence) + Style(bold=True))
        if self.view.block is not None:
            second.append(f"  block {self.view.block}", Style(bold=True))
        if record.error:
            second.append(f"  {theme.text(record.error)}", theme.role("preempt"))
        rest = theme.cut(theme.text(self.moment.header.description), width - second.cell_len - 2)
        second.append(f"  {rest}", theme.role("quiet"))
        return Picture([first, second]).fitted(width, 2).lines

    # Panels -----------------------------------------------------------------------------------------------------------

    def overview(self, width: int, height: int) -> Picture:
        if width < TWO_COLUMNS:
            return stacked(
                [
                    self._map_section(width, height, is_brief=height < ROOM_FOR_ALL),
                    Section(partial(self._composition, width), 3),
                    Section(partial(self._tables, width), 4),
                    Section(partial(self._words, width), 4),
                    Section(partial(self._queue, width), 3),
                    Section(partial(self._gauges, width), 3),
                    Section(partial(self._timeline, width), 6),
                ],
                height,
            )
        left_width = width * 11 // 20
        right_width = width - left_width - 3
        wall = f" {self.theme.glyphs.wall} "
        left = [self._map_section(left_width, height), Section(partial(self._words, left_width), 12)]
        tree = Section(partial(self.tree, left_width), 4)
        lines = min(max(height // 4, height - len(stacked(left, height))), height // 3)
        lines = min(lines, len(self._timeline(width, height)))
        right = [
            Section(partial(self._composition, right_width), 3),
            Section(partial(self._tables, right_width), 3),
            Section(partial(self._gauges, right_width), 4),
            Section(partial(self._queue, right_width), 2),
        ]
        above = stacked([*left, tree], height - lines).beside(stacked(right, height - lines), left_width, wall)
        return above + self._timeline(width, height - len(above))

    def blocks(self, width: int, height: int) -> Picture:
        return stacked([self._map_section(width, height), Section(partial(self._words, width), 4)], height)

    def tables(self, width: int, height: int) -> Picture:
        return stacked(
            [
                Section(partial(self._tables, width), 4),
                Section(partial(self._queue, width), 3),
                Section(partial(self._composition, width), 3),
            ],
            height,
        )

    def timeline(self, width: int, height: int) -> Picture:
        return stacked([Section(partial(self._timeline, width), 5), Section(partial(self._words, width), 3)], height)

    def tree(self, width: int, height: int) -> Picture:
        return prefix_tree(self.moment, self.theme, width, height, follow=self.view.sequence)

    def life(self, width: int, height: int) -> Picture:
        sections, run, theme = [], (self.history, self.index), self.theme
        if (block := self.view.block) is not None:
            sections.append(Section(lambda lines: block_life(*run, block, theme, width, lines), 4))
        if (sequence := self.view.sequence) is not None:
            sections.append(Section(lambda lines: sequence_life(*run, sequence, theme, width, lines), 4))
        if not sections:
            words = "nothing is selected: press a sequence's letter, or / and a block's number"
            return Picture([Text(words, theme.role("quiet"))])
        return stacked(sections, height)

    def _map_section(self, width: int, height: int, is_brief: bool = False) -> Section:
        """It gets room for a cell per block and the legend, as long as that is not more than half of everything. Only a
        pool that is larger takes more.
        """
        header = self.moment.header
        pools, half = (header.num_blocks, header.num_host_blocks), height // 2
        lines = map_lines(*pools, self.theme, width, half, is_brief=is_brief)
        most = height if lines == half else lines
        return Section(lambda given: self._map(width, min(given, most)), lines)

    # Parts ------------------------------------------------------------------------------------------------------------

    def _map(self, width: int, height: int) -> Picture:
        return self._block_map.draw(width, height)

    @cached_property
    def _block_map(self) -> BlockMap:
        view = self.view
        return BlockMap(self.moment, self.changes, self.theme, follow=view.sequence, selected=view.block)

    def _words(self, width: int, height: int) -> Picture:
        return what_changed(self.moment, self.changes, self.theme, width, height)

    def _tables(self, width: int, height: int) -> Picture:
        return block_tables(self.moment, self.changes, self.theme, width, height, follow=self.view.sequence)

    def _queue(self, width: int, height: int) -> Picture:
        return queue(self.moment, self.theme, width, height, follow=self.view.sequence)

    def _composition(self, width: int, height: int) -> Picture:
        return composition(self.moment.record, self.moment.header, self.theme, width, height, follow=self.view.sequence)

    def _gauges(self, width: int, height: int) -> Picture:
        return gauges(self.history, self.index, self.theme, width, height)

    def _timeline(self, width: int, height: int) -> Picture:
        return timeline(self.history, self.index, self.theme, width, height, follow=self.view.sequence)


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(lambda history, index, theme, width: dashboard(history, index, View(), width, 40, theme))
