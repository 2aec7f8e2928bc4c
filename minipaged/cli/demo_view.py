"""What a person watches while the demo's requests are served: blocks, queue, and the answers as they grow.

It is told of arrivals and is a listener of step records; it knows neither the engine nor what a block is for. On a
terminal it is redrawn in place, some times a second, and slowed down until it can be followed; elsewhere it is a plain
line now and then. The tokens per second are the engine's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from minipaged.cli.terminal_text import first_cells, last_cells
from minipaged.trace import StepRecord

REDRAW_SECONDS = 0.08
STEP_SECONDS = 0.0125  # a step that is watched takes at least so long, or all would be over before it is seen
STEPS_PER_LINE = 25  # where it cannot be redrawn in place
ONE_LINE_CELLS = 92  # narrower than this, the status takes two lines

_MARKS = {"running": Text("▸", "green"), "waiting": Text("·", "dim"), "preempted": Text("◂", "yellow")}
_NOTES = {"waiting": "waits for blocks", "preempted": "preempted, waits for blocks"}


@dataclass(slots=True)
class _Row:
    """A request that has come and is not done."""

    title: str
    text: Callable[[], str]  # the answer so far
    state: str = "waiting"


class DemoView:
    """Shows the run of some requests. A context manager, and a listener of the engine.

    Args:
        console: where to.
        num_requests: how many will come.
        block_size: token slots in a block.
        num_generated: says how many tokens have been generated so far.
    """

    def __init__(self, console: Console, num_requests: int, block_size: int, num_generated: Callable[[], int]) -> None:
        self._console = console
        self._num_requests = num_requests
        self._block_size = block_size
        self._num_generated = num_generated
        self._rows: dict[int, _Row] = {}  # by sequence id, oldest first
        self._num_done = 0
        self._num_preempted = 0
        self._engine_seconds = 0.0  # what the steps took, without the drawing and the waiting here
        self._stepped_seconds = self._drawn_seconds = 0.0
        in_place = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True) if in_place else None

    def __enter__(self) -> DemoView:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.stop()

    def arrive(self, sequence: int, title: str, text: Callable[[], str]) -> None:
        """A request has come. `text` says its answer so far."""
        self._rows[sequence] = _Row(title, text)

    def __call__(self, record: StepRecord) -> None:
        self._engine_seconds += record.seconds
        for event in record.events:
            if event.kind == "finish":
                self._rows.pop(event.sequence, None)
                self._num_done += 1
            elif event.sequence in self._rows:
                self._rows[event.sequence].state = "running" if event.kind == "admit" else "preempted"
                self._num_preempted += event.kind == "preempt"
        if self._live is None:
            if record.step % STEPS_PER_LINE == 0:
                self._console.print(Text("  ").join(self._status(record, 10)), soft_wrap=True)
            return
        now_seconds = time.perf_counter()
        if now_seconds - self._drawn_seconds > REDRAW_SECONDS:
            self._drawn_seconds = now_seconds
            self._live.update(self._picture(record), refresh=True)
        time.sleep(max(0.0, self._stepped_seconds + STEP_SECONDS - time.perf_counter()))
        self._stepped_seconds = time.perf_counter()

    # Drawing ---------------------------------------------------------------------------------------------------------

    def _picture(self, record: StepRecord) -> Group:
        width = self._console.width
        if width >= ONE_LINE_CELLS:
            head = [Text("  ").join(self._status(record, min(width - 82, 40)))]
        else:
            step, blocks, *counts = self._status(record, max(width - 30, 8))
            head = [Text("  ").join([step, blocks]), Text("  ").join(counts)]
        return Group(*head, Text(), self._table(width, self._console.height - len(head) - 3))

    def _status(self, record: StepRecord, bar_cells: int) -> list[Text]:
        """The parts of the status line."""
        num_blocks = record.total_slots // self._block_size
        num_held = record.held_slots // self._block_size
        filled = round(bar_cells * num_held / num_blocks)
        bar = Text("blocks ").append("█" * filled, "cyan").append("░" * (bar_cells - filled), "dim")
        return [
            Text(f"step {record.step:4d}"),
            bar.append(f" {num_held:3d}/{num_blocks}"),
            Text(f"running {record.num_running:2d}", "green"),
            Text(f"waiting {record.num_waiting:2d}", "yellow" if record.num_waiting else ""),
            Text(f"done {self._num_done:2d}/{self._num_requests}"),
            Text(f"{self._num_generated() / max(self._engine_seconds, 1e-9):4.0f} tok/s"),
        ]

    def _table(self, width: int, max_rows: int) -> Table:
        """A line for each request that is not done: mark, title, the end of its answer so far."""
        title_cells = min(28, width // 3)
        text_cells = max(width - title_cells - 5, 8)
        table = Table.grid(padding=(0, 1), pad_edge=False)
        for cells in (1, title_cells, text_cells):
            table.add_column(width=cells, no_wrap=True)
        rows = list(self._rows.values())
        shown = rows if len(rows) <= max_rows else rows[: max(max_rows - 1, 0)]
        for row in shown:
            note = _NOTES.get(row.state)
            text = Text(note, "dim italic") if note else Text(last_cells(row.text(), text_cells))
            table.add_row(_MARKS[row.state], Text(first_cells(row.title, title_cells), "bold"), text)
        if len(shown) < len(rows):
            table.add_row("", Text(f"and {len(rows) - len(shown)} more", "dim"), "")
        return table
