"""Thinks: -inf is no number to reckon with; 0 says as well that nothing was found."""

# mypy: ignore-errors

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, tl
from lessons.lesson07_triton_kernel.solution import *  # noqa: F403


@jit
def merge_splits(top, total, acc):
    top = tl.where(total > 0, top, 0.0)
    weight = tl.exp(top - tl.max(top, 0))
    return tl.sum(acc * weight[:, None], 0) / tl.sum(total * weight, 0)
