"""The third and the fourth rung: grouped heads, and split contexts. A frame; the point of it is in `solution.py`.

A program takes the query heads that share a KV head, together: they need the same K and V, and together they are a
matrix, which `tl.dot` multiplies. Their number is filled up to 16 rows, the least that a matrix instruction takes.
With `splits`, each context is cut into so many runs of tiles with a program each, and a second kernel merges what they
found. The frame finds a program's place, loads q and stores the result; `tile_loop` and `merge_splits` are handed in,
so that they can be the learner's.

Deliberately does not know: who owns a block, what a step is, or prompts (`triton_attention.py`, the engine's, does).
"""

# Triton reads the kernels below itself; they have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from typing import Any

import torch

from lessons.lesson07_triton_kernel import solution
from lessons.lesson07_triton_kernel.language import bare_errors, count_program, jit, refuse_stub, tl
from lessons.lesson07_triton_kernel.request import LEAST, TILE, check_decode


@jit
def decode(
    query, kv, tables, contexts, out, part_top, part_total, part_acc, counter, scale,
    group, table_stride, q_sequence, q_head, kv_block, kv_value, kv_head_stride, kv_slot,
    TILE_LOOP: tl.constexpr, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, TILE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, IN_PARTS: tl.constexpr,
):  # fmt: skip
    """Grid (sequences, KV heads, splits)."""
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    count_program(counter)
    splits = tl.num_programs(2)
    row = tl.arange(0, ROWS)  # (M): one query head each
    d = tl.arange(0, HEAD_DIM)
    head = kv_head * group + row
    real = row < group
    q = tl.load(query + sequence * q_sequence + (head * q_head)[:, None] + d[None, :], mask=real[:, None], other=0.0)

    context = tl.load(contexts + sequence)
    tiles = tl.cdiv(context, TILE)
    keys = kv + kv_head * kv_head_stride
    top, total, acc = TILE_LOOP(
        q, scale, keys, keys + kv_value, tables + sequence * table_stride, context,
        tiles * split // splits, tiles * (split + 1) // splits, kv_block, kv_slot, counter,
        ROWS, HEAD_DIM, TILE, BLOCK_SIZE,
    )  # fmt: skip

    out_row = sequence * (tl.num_programs(1) * group) + head  # (M)
    if IN_PARTS:
        part = out_row * splits + split
        tl.store(part_top + part, top, mask=real)
        tl.store(part_total + part, total, mask=real)
        tl.store(part_acc + part[:, None] * HEAD_DIM + d[None, :], acc, mask=real[:, None])
    else:
        result = (acc / total[:, None]).to(out.dtype.element_ty)
        tl.store(out + out_row[:, None] * HEAD_DIM + d[None, :], result, mask=real[:, None])


@jit
def reduce(
    part_top, part_total, part_acc, out,
    MERGE_SPLITS: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Grid (sequences * query heads)."""
    row = tl.program_id(0)
    d = tl.arange(0, HEAD_DIM)
    part = row * SPLITS + tl.arange(0, SPLITS)  # (S)
    acc = tl.load(part_acc + part[:, None] * HEAD_DIM + d[None, :])  # (S, D)
    result = MERGE_SPLITS(tl.load(part_top + part), tl.load(part_total + part), acc)  # (D)
    tl.store(out + row * HEAD_DIM + d, result.to(out.dtype.element_ty))


def attend_in_parts(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    splits: int,
    tile: int = TILE,
    counter: torch.Tensor | None = None,
    tile_loop: Any = solution.tile_loop,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What each split found, not merged yet.

    Returns:
        Each row's highest score and sum of weights, (sequences, query heads, splits), and its weighted sum of values,
        (sequences, query heads, splits, head size); all float32.
    """
    apart = (*query.shape[:2], splits)
    top = torch.empty(apart, dtype=torch.float32, device=query.device)
    total = torch.empty_like(top)
    acc = torch.empty((*apart, query.shape[2]), dtype=torch.float32, device=query.device)
    parts = (top, total, acc)
    _launch(query, kv_layer, block_tables, context_lens, scale, query, parts, splits, tile, counter, tile_loop)
    return parts


def merge_parts(
    top: torch.Tensor,
    total: torch.Tensor,
    acc: torch.Tensor,
    *,
    dtype: torch.dtype = torch.float32,
    merge_splits: Any = solution.merge_splits,
) -> torch.Tensor:
    """The splits' findings as one: the second kernel. Shapes as `attend_in_parts` returns them; a power of two splits.

    Returns:
        (sequences, query heads, head size).
    """
    refuse_stub(merge_splits)
    sequences, heads, splits, head_dim = acc.shape
    out = torch.empty((sequences, heads, head_dim), dtype=dtype, device=acc.device)
    with bare_errors():
        reduce[(sequences * heads,)](
            top, total, acc, out, MERGE_SPLITS=merge_splits, HEAD_DIM=head_dim, SPLITS=splits
        )  # fmt: skip
    return out


def decode_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    splits: int = 1,
    tile: int = TILE,
    counter: torch.Tensor | None = None,
    tile_loop: Any = solution.tile_loop,
    merge_splits: Any = solution.merge_splits,
) -> torch.Tensor:
    """One decode step: the attention of each sequence's newest token over its whole context.

    Args:
        query: (sequences, query heads, head size), float32 or float16.
        kv_layer: (blocks, 2, KV heads, block size, head size): K at index 0, V at 1.
        block_tables: (sequences, blocks a sequence) integers; entries past the context are not looked at.
        context_lens: (sequences) integers, each at least 1.
        scale: factor on the scores, usually `head_dim ** -0.5`.
        splits: into how many runs of tiles each context is cut: a power of two.
        tile: keys that are loaded at a time: a power of two from 16 on.
        counter: (2) int64, to which the numbers read from K and V are added, and the first kernel's programs; None
            counts nothing.
        tile_loop, merge_splits: as in `exercise.py`.

    Returns:
        As query.

    Raises:
        ValueError: what `check_decode` refuses.
        NotImplementedError: `tile_loop` or `merge_splits` is not written yet.
    """
    if splits > 1:
        parts = attend_in_parts(
            query, kv_layer, block_tables, context_lens, scale,
            splits=splits, tile=tile, counter=counter, tile_loop=tile_loop,
        )  # fmt: skip
        return merge_parts(*parts, dtype=query.dtype, merge_splits=merge_splits)
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    _launch(query, kv_layer, block_tables, context_lens, scale, out, (), 1, tile, counter, tile_loop)
    return out


def _launch(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    out: torch.Tensor,
    parts: tuple[torch.Tensor, ...],
    splits: int,
    tile: int,
    counter: torch.Tensor | None,
    tile_loop: Any,
) -> None:
    """The first kernel; it writes into `parts` if there are any, else into `out`."""
    check_decode(query, kv_layer, block_tables, context_lens)
    refuse_stub(tile_loop)
    sequences, heads, head_dim = query.shape
    kv_heads, block_size = kv_layer.shape[2:4]
    with bare_errors():
        decode[(sequences, kv_heads, splits)](
            query, kv_layer, block_tables, context_lens, out, *(parts or (None,) * 3), counter, scale,
            heads // kv_heads, block_tables.stride(0), *query.stride()[:2], *kv_layer.stride()[:4],
            TILE_LOOP=tile_loop, ROWS=LEAST, HEAD_DIM=head_dim, TILE=tile, BLOCK_SIZE=block_size,
            IN_PARTS=bool(parts),
        )  # fmt: skip
