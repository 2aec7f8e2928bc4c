"""The second rung: still one program per query head, now with online softmax over tiles of keys.

Two things are new. The softmax is corrected as it goes, so that one walk is enough. And a tile has as many keys as
suit the GPU, whatever the block size: each key's block is looked up by itself.

Deliberately does not know: that other query heads read the same KV head.
"""

# Triton reads the function below itself; it has no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import torch

from lessons.lesson07_triton_kernel.language import bare_errors, count_program, jit, load_kv, tl
from lessons.lesson07_triton_kernel.request import TILE, check_decode


@jit
def tiled(
    query, kv, tables, contexts, out, counter, scale,
    group, table_stride, q_sequence, q_head, kv_block, kv_value, kv_head_stride, kv_slot,
    HEAD_DIM: tl.constexpr, TILE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Grid (sequences, query heads)."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    count_program(counter)
    d = tl.arange(0, HEAD_DIM)
    q = tl.load(query + sequence * q_sequence + head * q_head + d).to(tl.float32)  # (D)
    context = tl.load(contexts + sequence)
    table = tables + sequence * table_stride
    keys = kv + head // group * kv_head_stride
    values = keys + kv_value

    top = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for tile in range(tl.cdiv(context, TILE)):
        key = tile * TILE + tl.arange(0, TILE)  # (N)
        inside = key < context
        block = tl.load(table + key // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)  # (N)
        at = (block * kv_block + key % BLOCK_SIZE * kv_slot)[:, None] + d[None, :]  # (N, D)
        k = load_kv(keys + at, inside[:, None], counter).to(tl.float32)
        v = load_kv(values + at, inside[:, None], counter).to(tl.float32)
        scores = tl.where(inside, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))  # (N)
        new_top = tl.maximum(top, tl.max(scores, 0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, 0)
        acc = acc * shrink + tl.sum(weights[:, None] * v, 0)
        top = new_top
    row = sequence * tl.num_programs(1) + head
    tl.store(out + row * HEAD_DIM + d, (acc / total).to(out.dtype.element_ty))


def tiled_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    tile: int = TILE,
    counter: torch.Tensor | None = None,
) -> torch.Tensor:
    """One decode step, as `decode_kernel.decode_attention` says."""
    check_decode(query, kv_layer, block_tables, context_lens)
    sequences, heads, head_dim = query.shape
    kv_heads, block_size = kv_layer.shape[2:4]
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    with bare_errors():
        tiled[(sequences, heads)](
            query, kv_layer, block_tables, context_lens, out, counter, scale,
            heads // kv_heads, block_tables.stride(0), *query.stride()[:2], *kv_layer.stride()[:4],
            HEAD_DIM=head_dim, TILE=tile, BLOCK_SIZE=block_size,
        )  # fmt: skip
    return out
