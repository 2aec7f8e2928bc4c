"""VirtualClock: seconds that pass only when somebody says so. An hour of traffic is over in less than a minute.

It is called as `time.perf_counter` is, so it goes wherever a clock is handed in. It knows nothing of what takes time.
"""

from __future__ import annotations


class VirtualClock:
    """Seconds that pass when somebody says so; called, it says how many have. Starts at 0."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0  # seconds

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """So much time passes.

        Raises:
            ValueError: time that runs backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"VirtualClock.advance: {seconds} seconds; time goes forward, so at least 0")
        self.now += seconds

    def wait_until(self, seconds: float) -> None:
        """Nothing happens until then; no effect when it is later already."""
        if seconds > self.now:
            self.now = seconds
