"""GatherAttention, the naive part: copies every context together, then attends as if there had never been blocks.

What `minipaged_kernels.reference` does, made as fast as plain torch allows: the copy goes straight to its place in one
operation, into memory that is kept from call to call, and sequences of equal lengths are computed together.

Deliberately does not know: who owns a block, or how many bytes it moves (`traffic.py` counts them).
"""

from __future__ import annotations

from collections import defaultdict

import torch
from minipaged_kernels import reference


class GatherAttention:
    """An attention backend: `paged_attention` and `write_kv`. Keeps a scratch as large as it has ever needed."""

    def __init__(self) -> None:
        self._scratch = torch.empty(0)

    write_kv = staticmethod(reference.write_kv)  # K and V are written where they belong, as by everybody

    def paged_attention(
        self,
        query: torch.Tensor,
        kv_layer: torch.Tensor,
        block_tables: torch.Tensor,
        query_starts: torch.Tensor,
        context_lens: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """Causal attention, as `minipaged_kernels.reference.paged_attention` says; computed in the cache's dtype."""
        out = torch.empty_like(query)
        starts = query_starts.tolist()
        alike = defaultdict(list)  # (new tokens, context) -> sequences
        for i, context in enumerate(context_lens.tolist()):
            alike[starts[i + 1] - starts[i], context].append(i)
        for (new, context), members in alike.items():
            rows = torch.cat([torch.arange(starts[i], starts[i + 1]) for i in members]).to(query.device)
            num_blocks = -(-context // kv_layer.shape[3])
            key, value = self._gather(kv_layer, block_tables[members, :num_blocks], context)
            out[rows] = _attend(query[rows].unflatten(0, (len(members), new)), key, value, scale).to(out.dtype)
        return out

    def _gather(self, kv_layer: torch.Tensor, tables: torch.Tensor, context: int) -> torch.Tensor:
        """K and V of sequences with equal contexts, each in one piece: (2, kv_heads, sequences, context, head_dim)."""
        in_order = kv_layer.permute(1, 2, 0, 3, 4)  # (2, kv_heads, num_blocks, block_size, head_dim): a view
        shape = (*in_order.shape[:2], tables.numel(), *in_order.shape[3:])
        copy = self._room(shape, kv_layer)
        torch.index_select(in_order, 2, tables.flatten().long(), out=copy)  # read scattered, write contiguous
        # Cut, not masked: the last block may hold anything beyond the context, and NaN * 0 is NaN.
        return copy.unflatten(2, tables.shape).flatten(3, 4)[:, :, :, :context]

    def _room(self, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
        size = torch.Size(shape).numel()
        if self._scratch.numel() < size or self._scratch.dtype != like.dtype or self._scratch.device != like.device:
            self._scratch = like.new_empty(size)
        return self._scratch[:size].view(shape)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> torch.Tensor:
    """The attention of every textbook: query (sequences, new, num_q_heads, head_dim), K and V as gathered."""
    new, context = query.shape[1], key.shape[2]
    rows = query.to(key.dtype).unflatten(2, (len(key), -1))  # (sequences, new, kv_heads, group, head_dim)
    group = rows.shape[3]
    rows = rows.permute(2, 0, 1, 3, 4).flatten(2, 3)  # (kv_heads, sequences, new * group, head_dim)
    scores = rows @ key.transpose(2, 3) * scale  # (kv_heads, sequences, new * group, context): read contiguous
    if new > 1:
        positions = torch.arange(context, device=query.device)
        last_seen = positions[context - new :].repeat_interleave(group)  # (new * group)
        scores = scores.masked_fill(positions > last_seen[:, None], float("-inf"))
    out = scores.softmax(dim=-1) @ value  # (kv_heads, sequences, new * group, head_dim): read contiguous
    return out.unflatten(2, (new, group)).permute(1, 2, 0, 3, 4).flatten(2, 3).flatten(0, 1)
