"""What the ladder's kernels are asked: one new token of each sequence, over a context that lies scattered in blocks.

Refuses what they cannot do. Knows no kernel.
"""

from __future__ import annotations

import torch

TILE = 32  # keys that are loaded at a time
LEAST = 16  # rows and numbers a head that a matrix instruction takes


def check_decode(
    query: torch.Tensor, kv_layer: torch.Tensor, block_tables: torch.Tensor, context_lens: torch.Tensor
) -> None:
    """The arguments fit together, and the ladder's kernels can take them.

    Raises:
        ValueError: they do not.
    """
    sequences, heads, head_dim = query.shape
    kv_heads, block_size = kv_layer.shape[2:4]
    if query.dtype not in (torch.float32, torch.float16) or kv_layer.dtype != query.dtype:
        raise ValueError(
            f"lesson 7: query is {query.dtype} and kv_layer {kv_layer.dtype}; both must be float32 or float16"
        )
    if heads % kv_heads:
        raise ValueError(f"lesson 7: {heads} query heads are not a multiple of {kv_heads} KV heads")
    if heads // kv_heads > LEAST:
        raise ValueError(f"lesson 7: {heads // kv_heads} query heads share a KV head; {LEAST} at most")
    for what, size in (("the head size", head_dim), ("the block size", block_size)):
        if size & (size - 1):
            raise ValueError(f"lesson 7: {what} is {size}; the lesson's kernels take powers of two")
    if head_dim < LEAST:
        raise ValueError(f"lesson 7: the head size is {head_dim}; a matrix instruction takes {LEAST} or more")
    if len(block_tables) != sequences or len(context_lens) != sequences:
        raise ValueError(
            f"lesson 7: {sequences} rows, {len(block_tables)} tables and {len(context_lens)} contexts; "
            "a decode has one of each for every sequence"
        )
    if query.stride(-1) != 1 or kv_layer.stride(-1) != 1 or block_tables.stride(-1) != 1:
        raise ValueError("lesson 7: the last dimension of query, kv_layer and block_tables must be contiguous")
