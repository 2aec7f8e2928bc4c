"""Running: a softmax-weighted sum that is not finished, since not all keys have been seen yet.

It is three numbers for each row (the last of them a vector), whatever the length of the context. Says what they mean
and how they begin; `update`, the exercise, says how they go on.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class Running(NamedTuple):
    """What is known of some rows after some keys. A row is one query vector: one token in one query head.

    Args:
        maximum: (heads, rows): m, the largest score so far; -inf when nothing has been seen.
        total: (heads, rows): l, the sum of exp(score - m) over the keys so far.
        acc: (heads, rows, head_dim): the sum of exp(score - m) * value over the keys so far. Not yet divided by l.
    """

    maximum: torch.Tensor
    total: torch.Tensor
    acc: torch.Tensor

    @classmethod
    def start(cls, heads: int, rows: int, head_dim: int, device: torch.device | str = "cpu") -> Running:
        """Before the first key: maximum -inf, total 0, acc 0, all in float32."""
        return cls(
            torch.full((heads, rows), float("-inf"), device=device),
            torch.zeros(heads, rows, device=device),
            torch.zeros(heads, rows, head_dim, device=device),
        )
