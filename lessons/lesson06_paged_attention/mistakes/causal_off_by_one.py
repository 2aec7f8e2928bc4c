"""“A token attends to the tokens before it: keys below c - n + j.”"""

from __future__ import annotations

import torch

from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.solution import *  # noqa: F403
from lessons.lesson06_paged_attention.solution import update


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    out = torch.empty_like(query)
    starts = query_starts.tolist()
    for i, context in enumerate(context_lens.tolist()):
        table, new = block_tables[i].tolist(), starts[i + 1] - starts[i]
        num_kv_heads, block_size, head_dim = kv_layer.shape[2:]
        rows = query[starts[i] : starts[i + 1]].unflatten(1, (num_kv_heads, -1)).transpose(0, 1) * scale
        group = rows.shape[2]
        running = Running.start(num_kv_heads, new * group, head_dim)
        for first in range(0, context, block_size):
            filled = min(block_size, context - first)
            key, value = kv_layer[table[first // block_size], :, :, :filled]
            positions = torch.arange(first, first + filled)
            visible = positions < torch.arange(context - new, context)[:, None]  # (new, filled)
            scores = rows.flatten(1, 2) @ key.transpose(1, 2)
            scores = scores.masked_fill(~visible.repeat_interleave(group, dim=0), float("-inf"))
            running = update(running, scores, value)
        result = (running.acc / running.total[..., None]).unflatten(1, (new, group))
        out[starts[i] : starts[i + 1]] = result.transpose(0, 1).flatten(1, 2)
    return out
