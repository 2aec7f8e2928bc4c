"""Lesson 3, our answer. The batch that it belongs to is minipaged/model/static_batch.py, which has the same two."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def pad(prompts: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """Padding goes behind: in front it would push every token to a position where it does not belong."""
    longest = max(len(prompt) for prompt in prompts)
    return [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], [len(prompt) - 1 for prompt in prompts]


def hide(positions: torch.Tensor, columns: int) -> torch.Tensor:
    """Everything behind the token's own column, be it future, padding, or a neighbour's. Itself it sees."""
    column = torch.arange(columns, device=positions.device)  # (columns)
    return column > positions[:, :, None]  # (batch, new, columns)


def wasted_rows(prompt_lengths: Sequence[int], answer_lengths: Sequence[int]) -> tuple[int, int]:
    """Everybody is brought up to the longest, twice: to the longest prompt, and to the longest answer."""
    padded = sum(max(prompt_lengths) - length for length in prompt_lengths)
    idle = sum(max(answer_lengths) - length for length in answer_lengths)
    return padded, idle
