"""Quantiles from buckets against quantiles from all the values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.serving.histogram import Histogram


@given(st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_right_to_half_a_percent(values: list[float], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    rank = next(i for i in range(len(ordered)) if i + 1 >= share * len(ordered))
    assert histogram.quantile(share) == pytest.approx(ordered[rank], rel=0.006)
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    assert histogram.largest == max(values) and histogram.count == len(values)


def test_many_of_one_value_are_one_bucket() -> None:
    one, many = Histogram(), Histogram()
    many.add(0.25, times=1000)
    for _ in range(1000):
        one.add(0.25)
    assert (one.count, one.quantile(0.5)) == (many.count, many.quantile(0.5))
    assert one.total == pytest.approx(many.total)


def test_without_values_everything_is_zero() -> None:
    assert (Histogram().mean, Histogram().quantile(0.5), Histogram().largest) == (0, 0, 0)
    with pytest.raises(ValueError, match="it must be at least 0"):
        Histogram().add(-1)
