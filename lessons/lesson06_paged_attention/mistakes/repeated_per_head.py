"""“Six query heads need six heads of keys, so each KV head is repeated until there are as many.”"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.solution import *  # noqa: F403
from lessons.lesson06_paged_attention.solution import update


def attend(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    num_q_heads, head_dim = query.shape
    num_kv_heads, block_size = kv_layer.shape[2:4]
    running = Running.start(num_q_heads, 1, head_dim, query.device)
    for first in range(0, context, block_size):
        block = kv_layer[table[first // block_size], :, :, : context - first]
        key, value = (half.repeat_interleave(num_q_heads // num_kv_heads, dim=0) for half in block)
        running = update(running, query[:, None] @ key.transpose(1, 2) * scale, value)
    return (running.acc / running.total[..., None])[:, 0]
