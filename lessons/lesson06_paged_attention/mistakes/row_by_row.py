"""“A prefill is so many decodes, each with a context that is one longer.”"""

from __future__ import annotations

import torch

from lessons.lesson06_paged_attention.solution import *  # noqa: F403
from lessons.lesson06_paged_attention.solution import attend


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
        for j in range(new):
            seen = context - new + j + 1
            out[starts[i] + j] = attend(query[starts[i] + j], kv_layer, table, seen, scale)
    return out
