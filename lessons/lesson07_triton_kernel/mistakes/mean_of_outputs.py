"""Thinks: each split has computed an attention, and the mean of them is the attention of all."""

# mypy: ignore-errors

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, tl
from lessons.lesson07_triton_kernel.solution import *  # noqa: F403


@jit
def merge_splits(top, total, acc):
    some = total > 0
    outputs = tl.where(some[:, None], acc / tl.where(some, total, 1.0)[:, None], 0.0)
    return tl.sum(outputs, 0) / tl.sum(some.to(tl.float32), 0)
