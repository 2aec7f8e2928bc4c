"""Huge pages: what lies in the memory stays as it is, and where there is nothing to gather nothing happens."""

import numpy as np
import pytest
import torch

from minipaged.model.huge_pages import PAGE_BYTES, gather, zeros


def test_what_is_gathered_stays_as_it_is() -> None:
    numbers = np.arange(2 * PAGE_BYTES // 4, dtype=np.float32)  # two pages' worth; it may lie in three
    before = numbers.copy()
    assert 0 <= gather(numbers.ctypes.data, numbers.nbytes) <= 3
    assert np.array_equal(numbers, before)


def test_memory_that_is_not_there_is_left_alone() -> None:
    assert gather(0, PAGE_BYTES) == 0


@pytest.mark.parametrize("shape", [(3, 5), (3, PAGE_BYTES), (1,), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros_are_zeros_that_can_be_written(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    found = zeros(shape, dtype)
    assert found.shape == shape and found.dtype == dtype and found.is_contiguous()
    assert not found.any()
    found += 1
    assert torch.equal(found, torch.ones(shape, dtype=dtype))
