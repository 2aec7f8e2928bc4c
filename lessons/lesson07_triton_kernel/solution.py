"""Lesson 7, solved: the tile loop and the merge. The third and fourth rung of the ladder run these two."""

# Triton reads the functions below itself; they have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, load_kv, tl


@jit
def tile_loop(
    q, scale, keys, values, table, context, tile_0, tile_end, kv_block, kv_slot, counter,
    ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, TILE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Attention of some rows over the tiles `tile_0 … tile_end - 1`: see `exercise.py`."""
    d = tl.arange(0, HEAD_DIM)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    for tile in range(tile_0, tile_end):
        key = tile * TILE + tl.arange(0, TILE)  # (TILE)
        inside = key < context  # the last tile may reach beyond the context, where anything may lie
        # A tile may have keys of several blocks, or of a part of one. Each key looks its own up.
        block = tl.load(table + key // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
        at = (block * kv_block + key % BLOCK_SIZE * kv_slot)[:, None] + d[None, :]  # (TILE, HEAD_DIM)
        k = load_kv(keys + at, inside[:, None], counter)
        v = load_kv(values + at, inside[:, None], counter)

        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # (ROWS, TILE)
        scores = tl.where(inside[None, :], scores, float("-inf"))
        # Every tile has a key, so new_top is a number from the first tile on, and exp(-inf - new_top) is 0.
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)  # what was added up so far was meant for the old top
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = new_top
    return top, total, acc


@jit
def merge_splits(top, total, acc):
    """One row's result from what the splits of its context found: see `exercise.py`."""
    weight = tl.exp(top - tl.max(top, 0))  # (SPLITS): brings each split to the common top; 0 for an empty one
    return tl.sum(acc * weight[:, None], 0) / tl.sum(total * weight, 0)
