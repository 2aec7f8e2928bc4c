"""The three kernels in plain torch: a gather and a softmax. The oracle of every other backend, so clarity comes first.

Deliberately does not know: who owns a block, which sequences share one, what a token is. It uses no slot beyond a
sequence's context: blocks are gathered whole, then cut, so what lies there (NaN, in debug mode) cannot reach a result.
"""

from __future__ import annotations

import torch


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    compute_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Causal attention of each sequence's new tokens over its whole context, which lies scattered in blocks.

    A sequence with m new tokens and a context of c tokens (the new ones included, their K and V already written): its
    row j sees the keys `0 … c - m + j`. Query head h reads KV head `h // (num_q_heads // num_kv_heads)`.

    Args:
        query: (num_tokens, num_q_heads, head_dim); sequence i owns rows `query_starts[i]:query_starts[i + 1]`.
        kv_layer: (num_blocks, 2, num_kv_heads, block_size, head_dim): K at index 0, V at 1. May be a strided view.
        block_tables: (num_sequences, max_blocks) integers; entries past the context are not looked at.
        query_starts: (num_sequences + 1) integers, from 0 to num_tokens.
        context_lens: (num_sequences) integers.
        scale: factor on the scores, usually `head_dim ** -0.5`.
        compute_dtype: the precision of scores, softmax and sum, and then of the result too. Without it they are
            computed in float32 (float64 for float64 inputs) and the result is rounded to the query's dtype.

    Returns:
        (num_tokens, num_q_heads, head_dim).

    Raises:
        ValueError: num_q_heads is not a multiple of num_kv_heads.
    """
    num_q_heads = query.shape[1]
    num_kv_heads, block_size = kv_layer.shape[2:4]
    if num_q_heads % num_kv_heads:
        raise ValueError(f"paged_attention: {num_q_heads} query heads are not a multiple of {num_kv_heads} KV heads")
    group = num_q_heads // num_kv_heads
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    compute = compute_dtype or wide
    out = torch.empty(query.shape, dtype=compute_dtype or query.dtype, device=query.device)

    starts, contexts = query_starts.tolist(), context_lens.tolist()
    for i, context in enumerate(contexts):
        rows = slice(starts[i], starts[i + 1])
        new = starts[i + 1] - starts[i]  # m: tokens of this step
        table = block_tables[i, : -(-context // block_size)].long()  # (blocks)

        gathered = kv_layer[table]  # (blocks, 2, kv_heads, block_size, head_dim)
        in_order = gathered.permute(1, 2, 0, 3, 4).flatten(2, 3)  # (2, kv_heads, blocks * block_size, head_dim)
        # Cut, not masked: the tail of the last block may hold NaN, and NaN * 0 is NaN.
        key, value = in_order[:, :, :context].to(compute)  # each (kv_heads, context, head_dim)
        q = query[rows].to(compute).unflatten(1, (num_kv_heads, group))  # (new, kv_heads, group, head_dim)

        scores = torch.einsum("qhgd,hkd->hgqk", q, key) * scale  # (kv_heads, group, new, context)
        positions = torch.arange(context, device=query.device)  # (context)
        visible = positions <= positions[context - new :, None]  # (new, context)
        weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)  # (kv_heads, group, new, context)
        result = torch.einsum("hgqk,hkd->qhgd", weights, value)  # (new, kv_heads, group, head_dim)
        out[rows] = result.flatten(1, 2).to(out.dtype)  # (new, num_q_heads, head_dim)
    return out


def write_kv(key: torch.Tensor, value: torch.Tensor, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """Writes each token's K and V into its slot, in place.

    Args:
        key: (num_tokens, num_kv_heads, head_dim).
        value: (num_tokens, num_kv_heads, head_dim).
        kv_layer: (num_blocks, 2, num_kv_heads, block_size, head_dim). May be a strided view.
        slots: (num_tokens) integers, `physical block * block_size + offset`; no slot twice.
    """
    block_size = kv_layer.shape[3]
    slots = slots.long()
    blocks, offsets = slots // block_size, slots % block_size  # each (num_tokens)
    # Two index tensors with a slice between them: torch puts the indexed dimension first, (tokens, kv_heads, head_dim).
    kv_layer[:, 0][blocks, :, offsets] = key.to(kv_layer.dtype)
    kv_layer[:, 1][blocks, :, offsets] = value.to(kv_layer.dtype)


def copy_blocks(source: torch.Tensor, destination: torch.Tensor, pairs: torch.Tensor) -> None:
    """Copies whole blocks, pair by pair, as if each copy had ended before the next began.

    So the chain 1→2, 2→3 inside one tensor leaves block 1's content in all three.

    Args:
        source: (num_blocks, …), what is read.
        destination: (num_blocks, …), what is written: the same tensor or another, on the same device or another; its
            shape is the source's but for dim 0.
        pairs: (n, 2) integers, source block → destination block.
    """
    for source_block, destination_block in pairs.tolist():
        destination[destination_block].copy_(source[source_block])
