"""The naive kernel: one program per sequence and query head, one block of the cache at a time.

Softmax as it is written: first the highest score, then the weights. So a program walks its context twice, and reads K
in both walks. It is right, and it is what one writes first.

Deliberately does not know: that other query heads read the same KV head.
"""

# Triton reads the function below itself; it has no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import torch

from lessons.lesson07_triton_kernel.language import bare_errors, count_program, jit, load_kv, tl
from lessons.lesson07_triton_kernel.request import check_decode


@jit
def naive(
    query, kv, tables, contexts, out, counter, scale,
    group, table_stride, q_sequence, q_head, kv_block, kv_value, kv_head_stride, kv_slot,
    HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Grid (sequences, query heads)."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    count_program(counter)
    d = tl.arange(0, HEAD_DIM)
    slot = tl.arange(0, BLOCK_SIZE)
    q = tl.load(query + sequence * q_sequence + head * q_head + d).to(tl.float32)  # (D)
    context = tl.load(contexts + sequence)
    table = tables + sequence * table_stride
    keys = kv + head // group * kv_head_stride
    values = keys + kv_value
    within = slot[:, None] * kv_slot + d[None, :]  # (slots, D)

    top = tl.full((), float("-inf"), tl.float32)
    for i in range(tl.cdiv(context, BLOCK_SIZE)):
        at = tl.load(table + i).to(tl.int64) * kv_block + within
        inside = i * BLOCK_SIZE + slot < context  # (slots)
        k = load_kv(keys + at, inside[:, None], counter).to(tl.float32)  # (slots, D)
        scores = tl.where(inside, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))  # (slots)
        top = tl.maximum(top, tl.max(scores, 0))

    total = tl.full((), 0.0, tl.float32)
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for i in range(tl.cdiv(context, BLOCK_SIZE)):
        at = tl.load(table + i).to(tl.int64) * kv_block + within
        inside = i * BLOCK_SIZE + slot < context
        k = load_kv(keys + at, inside[:, None], counter).to(tl.float32)
        v = load_kv(values + at, inside[:, None], counter).to(tl.float32)
        scores = tl.where(inside, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))
        weights = tl.exp(scores - top)
        total += tl.sum(weights, 0)
        acc += tl.sum(weights[:, None] * v, 0)
    row = sequence * tl.num_programs(1) + head
    tl.store(out + row * HEAD_DIM + d, (acc / total).to(out.dtype.element_ty))


def naive_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    counter: torch.Tensor | None = None,
) -> torch.Tensor:
    """One decode step, as `decode_kernel.decode_attention` says."""
    check_decode(query, kv_layer, block_tables, context_lens)
    sequences, heads, head_dim = query.shape
    kv_heads, block_size = kv_layer.shape[2:4]
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    with bare_errors():
        naive[(sequences, heads)](
            query, kv_layer, block_tables, context_lens, out, counter, scale,
            heads // kv_heads, block_tables.stride(0), *query.stride()[:2], *kv_layer.stride()[:4],
            HEAD_DIM=head_dim, BLOCK_SIZE=block_size,
        )  # fmt: skip
    return out
