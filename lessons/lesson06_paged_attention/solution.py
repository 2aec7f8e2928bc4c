"""Lesson 6, solution: online softmax over blocks, read where they lie. The lesson's real part, too."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention.running import Running


def update(running: Running, scores: torch.Tensor, values: torch.Tensor) -> Running:
    """Take one block's keys into a softmax that has seen the keys before them.

    Args:
        running: what is known of the keys before: maximum and total (heads, rows), acc (heads, rows, head_dim).
        scores: (heads, rows, keys), already scaled; -inf is a key that the row must not see.
        values: (heads, keys, head_dim).

    Returns:
        What is known with these keys, in the same shapes.
    """
    maximum = torch.maximum(running.maximum, scores.amax(dim=-1))  # (heads, rows)
    # A row that has seen nothing at all still has the maximum -inf, and -inf - -inf is NaN. Any finite number will do
    # in its place: all its weights are exp(-inf) = 0.
    base = maximum.masked_fill(maximum == float("-inf"), 0.0)  # (heads, rows)
    rescale = torch.exp(running.maximum - base)  # (heads, rows): 0 at the start, 1 where the maximum stays
    weights = torch.exp(scores - base[..., None])  # (heads, rows, keys)
    return Running(
        maximum,
        running.total * rescale + weights.sum(dim=-1),
        running.acc * rescale[..., None] + weights @ values,
    )


def attend(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    """Attention of one new token over its context, block by block.

    Args:
        query: (num_q_heads, head_dim).
        kv_layer: (num_blocks, 2, num_kv_heads, block_size, head_dim).
        table: physical block of each logical block, in order; it may be longer than the context needs.
        context: number of keys, the new token's own included; at least 1.
        scale: factor on the scores.

    Returns:
        (num_q_heads, head_dim).
    """
    return attend_rows(query[None], kv_layer, table, context, scale)[0]


def attend_rows(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    """Attention of one sequence's new tokens, (new, num_q_heads, head_dim): each block is read once for all of them."""
    new = len(query)
    num_kv_heads, block_size, head_dim = kv_layer.shape[2:]
    # All rows that read one KV head, together: its group of query heads for each of the new tokens.
    rows = query.float().unflatten(1, (num_kv_heads, -1)).transpose(0, 1)  # (kv_heads, new, group, head_dim)
    group = rows.shape[2]
    rows = rows.flatten(1, 2) * scale  # (kv_heads, new * group, head_dim)
    last_seen = torch.arange(context - new, context, device=query.device).repeat_interleave(group)  # (new * group)

    running = Running.start(num_kv_heads, rows.shape[1], head_dim, query.device)
    for first in range(0, context, block_size):  # the block's first key
        physical = table[first // block_size]
        filled = min(block_size, context - first)  # the last block is cut here, before anything is computed from it
        key, value = kv_layer[physical, :, :, :filled].float()  # each (kv_heads, filled, head_dim); float32: no copy
        scores = rows @ key.transpose(1, 2)  # (kv_heads, new * group, filled)
        if first + filled - 1 > context - new:  # the first row does not see all of this block
            positions = torch.arange(first, first + filled, device=query.device)
            scores = scores.masked_fill(positions > last_seen[:, None], float("-inf"))
        running = update(running, scores, value)

    out = running.acc / running.total[..., None]  # (kv_heads, new * group, head_dim): divided once, at the end
    return out.unflatten(1, (new, group)).transpose(0, 1).flatten(1, 2).to(query.dtype)


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention for a step: several sequences, each with one new token or many. The kernels' own signature.

    Args:
        query: (num_tokens, num_q_heads, head_dim); sequence i owns rows `query_starts[i]:query_starts[i + 1]`.
        kv_layer: (num_blocks, 2, num_kv_heads, block_size, head_dim).
        block_tables: (num_sequences, max_blocks) integers; entries past a context mean nothing.
        query_starts: (num_sequences + 1) integers, from 0 to num_tokens.
        context_lens: (num_sequences) integers.
        scale: factor on the scores.

    Returns:
        (num_tokens, num_q_heads, head_dim).
    """
    out = torch.empty_like(query)
    starts, tables = query_starts.tolist(), block_tables.tolist()
    for i, context in enumerate(context_lens.tolist()):
        mine = slice(starts[i], starts[i + 1])
        out[mine] = attend_rows(query[mine], kv_layer, tables[i], context, scale)
    return out
