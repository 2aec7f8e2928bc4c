"""“Blocks first become one tensor; then it is the attention that everybody knows.”"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention.solution import *  # noqa: F403


def attend(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    num_kv_heads, block_size = kv_layer.shape[2:4]
    blocks = kv_layer[list(table[: -(-context // block_size)])]  # (blocks, 2, kv_heads, block_size, head_dim)
    key, value = blocks.permute(1, 2, 0, 3, 4).flatten(2, 3)[:, :, :context]
    rows = query.unflatten(0, (num_kv_heads, -1)) * scale
    return ((rows @ key.transpose(1, 2)).softmax(dim=-1) @ value).flatten(0, 1)
