"""Thinks: a split weighs exp(top); the highest top cancels out anyway."""

# mypy: ignore-errors

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, tl
from lessons.lesson07_triton_kernel.solution import *  # noqa: F403


@jit
def merge_splits(top, total, acc):
    weight = tl.exp(top)
    return tl.sum(acc * weight[:, None], 0) / tl.sum(total * weight, 0)
