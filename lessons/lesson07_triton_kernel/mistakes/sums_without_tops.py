"""Thinks: sums can be added, whatever they are sums of."""

# mypy: ignore-errors

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, tl
from lessons.lesson07_triton_kernel.solution import *  # noqa: F403


@jit
def merge_splits(top, total, acc):
    return tl.sum(acc, 0) / tl.sum(total, 0)
