"""Thinks: each tile is measured against its own highest score."""

# mypy: ignore-errors

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, load_kv, tl
from lessons.lesson07_triton_kernel.solution import *  # noqa: F403


@jit
def tile_loop(
    q, scale, keys, values, table, context, tile_0, tile_end, kv_block, kv_slot, counter,
    ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, TILE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, HEAD_DIM)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    for tile in range(tile_0, tile_end):
        key = tile * TILE + tl.arange(0, TILE)
        inside = key < context
        block = tl.load(table + key // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
        at = (block * kv_block + key % BLOCK_SIZE * kv_slot)[:, None] + d[None, :]
        k = load_kv(keys + at, inside[:, None], counter)
        v = load_kv(values + at, inside[:, None], counter)

        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_top = tl.max(scores, 1)
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = new_top
    return top, total, acc
