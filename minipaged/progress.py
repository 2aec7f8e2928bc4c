"""ProgressBar: one line on standard error while long work runs. It is told numbers and knows nothing else."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

REFRESH_SECONDS = 0.1
PATIENCE_SECONDS = 1.0  # shorter work passes without a bar


class ProgressBar:
    """Shows how many requests are answered and how fast tokens come; removed when the work is done.

    Args:
        wanted: True shows it at once; None only on a terminal, and only when the work takes longer than a second.
    """

    def __init__(self, wanted: bool | None = None) -> None:
        self._wanted = wanted
        self._started_seconds = 0.0
        self._updated_seconds = 0.0
        self._progress: Progress | None = None

    def __enter__(self) -> ProgressBar:
        self._started_seconds = time.monotonic()
        return self

    def is_due(self) -> bool:
        """Whether an `update` would show, and the last one was long enough ago."""
        now = time.monotonic()
        if self._progress is None and not self._wanted:
            long = now - self._started_seconds > PATIENCE_SECONDS
            return long and self._wanted is None and sys.stderr.isatty()
        return now - self._updated_seconds > REFRESH_SECONDS

    def update(self, done: int, total: int, num_tokens: int) -> None:
        """Set the bar to `done` of `total` requests, `num_tokens` generated so far."""
        self._updated_seconds = time.monotonic()
        elapsed_seconds = self._updated_seconds - self._started_seconds
        if self._progress is None:
            columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
            self._progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._progress.add_task("", rate="")
            self._progress.start()
        rate = f"{num_tokens / max(elapsed_seconds, 1e-9):.0f} tokens/s"
        self._progress.update(self._progress.task_ids[0], completed=done, total=total, rate=rate)

    def __exit__(self, *exc_info: object) -> None:
        if self._progress is not None:
            self._progress.stop()
