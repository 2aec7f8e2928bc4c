"""Histogram: how often values of which size were seen, so that their quantiles are known without keeping them.

Its buckets grow by 1 % each, so a quantile is right to half a percent, and a million values need no more room than a
hundred. It knows nothing of what the values are.
"""

from __future__ import annotations

from math import exp, floor, log

_LOG_WIDTH = log(1.01)


class Histogram:
    """Of values of at least 0."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self._zeros = 0
        self._buckets: dict[int, int] = {}  # i -> how many in [1.01 ** i, 1.01 ** (i + 1))

    def add(self, value: float, times: int = 1) -> None:
        """Count a value.

        Raises:
            ValueError: it is below 0.
        """
        if not value >= 0:
            raise ValueError(f"Histogram.add: {value}; it must be at least 0")
        self.count += times
        self.total += value * times
        if value > self.largest:
            self.largest = value
        if value == 0:
            self._zeros += times
            return
        bucket = floor(log(value) / _LOG_WIDTH)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + times

    @property
    def mean(self) -> float:
        """Exact; 0 when there is no value."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The least value that at least this share of all are not above, to half a percent; 0 when there is none."""
        rank = share * self.count
        seen = self._zeros
        if not self.count or seen >= rank:
            return 0.0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return min(exp((bucket + 0.5) * _LOG_WIDTH), self.largest)
        return self.largest
