"""Lesson 7: the two pieces of a decode kernel in which the work is done.

Both are Triton functions: they run on the GPU, or in Triton's interpreter, where `print` works as in any Python
function. `decode_kernel.py` calls them. What they can use: `tl.arange`, `tl.full`, `tl.zeros`, `tl.load`, `tl.where`,
`tl.dot`, `tl.trans`, `tl.max`, `tl.sum`, `tl.maximum`, `tl.exp`.
"""

# Triton reads the functions below itself; they have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from lessons.lesson07_triton_kernel.language import jit, load_kv, tl  # noqa: F401  (task 1 needs load_kv)


@jit
def tile_loop(
    q, scale, keys, values, table, context, tile_0, tile_end, kv_block, kv_slot, counter,
    ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, TILE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Task 1: attention of some rows over the tiles `tile_0 … tile_end - 1` of one sequence's context.

    Tile t holds the keys `t * TILE … t * TILE + TILE - 1`; the last tile of a context may be only partly filled. Online
    softmax, in float32. Key j lies in slot `j % BLOCK_SIZE` of the physical block `table[j // BLOCK_SIZE]`; number d of
    it is at `keys + block * kv_block + slot * kv_slot + d`, that of its value at the same distance from `values`.

    Args:
        q: (ROWS, HEAD_DIM): one query head in each row. Loaded already.
        scale: factor on the scores.
        keys, values: pointers to K and V of this KV head in block 0.
        table: pointer to the sequence's block table, 32-bit integers.
        context: keys in the sequence.
        tile_0, tile_end: this program's tiles; there may be none.
        kv_block, kv_slot: numbers from one block to the next, and from one slot to the next. 32 bits wide; a product
            with a block's number may not be.
        counter: hand it to `load_kv(pointers, mask, counter)`, which loads K or V and counts. The mask is given for
            the tile's keys, (TILE, 1).

    Returns:
        top (ROWS): each row's highest score, -inf where there was no tile. total (ROWS): its sum of
        `exp(score - top)`. acc (ROWS, HEAD_DIM): its sum of `exp(score - top) * value`. All float32, not yet divided.

    Products: `tl.dot(a, b, input_precision="ieee")`, where a and b have one dtype; without "ieee" a GPU rounds float32
    to 10 bits. The weights are brought to the values' dtype with `.to(v.dtype)`.

    Example, with TILE 16 and BLOCK_SIZE 4, a context of 18 and the table [7, 2, 5, 0, 3]:
        tile 0 has keys 0 to 15: four each from blocks 7, 2, 5 and 0
        tile 1 has keys 16 and 17, from slots 0 and 1 of block 3; the other 14 are masked
    """
    raise NotImplementedError("lesson 7, task 1: walk the tiles with online softmax")


@jit
def merge_splits(top, total, acc):
    """Task 2: one row's result from what the splits of its context found.

    Args:
        top: (SPLITS): the highest score that each split has seen; -inf for one that had no tile. One at least had.
        total: (SPLITS): each split's sum of `exp(score - its top)`.
        acc: (SPLITS, HEAD_DIM): each split's sum of `exp(score - its top) * value`.

    Returns:
        (HEAD_DIM): the row's attention over the whole context.

    Example: two splits of one key each, with the scores 0 and 0 and the values 2 and 6:
        top [0, 0], total [1, 1], acc [[2], [6]] give [4]
    and with a third key, also of score 0 and value 7, in the second split:
        top [0, 0], total [1, 2], acc [[2], [13]] give [5], which is (2 + 6 + 7) / 3
    """
    raise NotImplementedError("lesson 7, task 2: merge what the splits found")
