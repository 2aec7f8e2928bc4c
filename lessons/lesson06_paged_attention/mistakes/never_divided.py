"""“What has been weighed and added up is the answer.”"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.solution import *  # noqa: F403
from lessons.lesson06_paged_attention.solution import update


def attend(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    num_kv_heads, block_size, head_dim = kv_layer.shape[2:]
    rows = query.unflatten(0, (num_kv_heads, -1)) * scale
    running = Running.start(num_kv_heads, rows.shape[1], head_dim)
    for first in range(0, context, block_size):
        physical = table[first // block_size]
        filled = min(block_size, context - first)
        key, value = kv_layer[physical, :, :, :filled]
        running = update(running, rows @ key.transpose(1, 2), value)
    return running.acc.flatten(0, 1)
