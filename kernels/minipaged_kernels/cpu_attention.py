"""The arithmetic of attention on the CPU: from flat memory, strides and a list of work to rows of the result.

How a row is computed, always, whatever its neighbours, the step it belongs to, the threads and the place of its
blocks: keys are taken in tiles of `TILE`, counted from key 0. In a tile, each score is a dot product of sixteen
running sums, added up pairwise; then come the tile's maximum, exponentials, their sum, and the weighted sum of V, key
after key. The tiles' results are merged in their order. A decode and the row of a prefill go through these same
operations, so their bits are equal, at every batch, chunk size, block size and number of threads.
(`tests/kernels/test_attention_backends.py` compares them.)

Work is a list of items: a sequence, some of its query rows, some of its KV heads. (A row is one token in one of the
query heads that share a KV head.) A prefill's item is many rows of one KV head, which share what was read; a decode's
is one row of many KV heads, because they lie one after the other in a block and memory is fastest read in long runs.
A thread that is done takes the next item. Where there are too few items for the threads, as for one long sequence
with one KV head, an item is one tile of keys, and the merge comes afterwards.

Deliberately does not know: tensors, torch, who owns a block, or that anything is ever NaN: what lies beyond a
sequence's context is not multiplied by 0, it is not multiplied.
"""

# Numba's functions have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import ctypes

import numpy as np
from numba import carray, njit

from minipaged_kernels.simd import (
    LANES,
    add,
    exp,
    first,
    first_lanes,
    flat,
    fma,
    highest,
    load,
    load_first,
    maximum,
    mul,
    pairwise,
    pointer,
    prefetch,
    splat,
    store,
    store_first,
    sub,
    take_ticket,
    total,
)

TILE = 256  # keys that are scored before their softmax: 16 rows of scores fill half a level-1 cache
ROWS = 16  # query rows of an item, those of all its KV heads together

# Each key's flat index of its K's first number, and what to add for its V, is all that the functions below know of
# blocks. Rows of float32 scratch are `size` apart: head_dim, rounded up to whole registers.

# -- one tile of keys --------------------------------------------------------------------------------------------------


@njit
def _read_16_rows(source, offsets, t, shift, count, head_dim, copy, size):
    """Copies `count` ≤ 16 rows of K or V, from key t on, to float32 scratch, in the order of memory."""
    whole = head_dim // LANES * LANES
    for j in range(count):
        o = offsets[t + j] + shift
        for d in range(0, whole, LANES):
            store(copy, j * size + d, load(source, o + d))
        if whole < size:
            store(copy, j * size + whole, load_first(head_dim - whole, source, o + whole))


@njit
def _prefetch_16_rows(source, offsets, t, shift, end, size):
    """Asks for the rows of K or V from key t on, up to sixteen and before key `end`, a cache line at a time."""
    for j in range(t, min(t + LANES, end)):
        for d in range(0, size, 64 // source.itemsize):
            prefetch(source, offsets[j] + shift + d)


@njit(forceinline=True)
def _products(query, q, keys, k, size):
    """Sixteen partial sums of one query row times one key: lane i has the numbers i, i + 16, … of both."""
    s = splat(0.0)
    for d in range(0, size, LANES):
        s = fma(load(query, q + d), load(keys, k + d), s)
    return s


@njit(forceinline=True)
def _products_4(query, q, keys, offsets, t, shift, size):
    """The partial sums of four keys, brought down to four lanes for each."""
    s0 = _products(query, q, keys, offsets[t] + shift, size)
    s1 = _products(query, q, keys, offsets[t + 1] + shift, size)
    s2 = _products(query, q, keys, offsets[t + 2] + shift, size)
    s3 = _products(query, q, keys, offsets[t + 3] + shift, size)
    return pairwise(pairwise(s0, s1), pairwise(s2, s3))


@njit
def _dot_16_scattered(query, q, keys, offsets, t, shift, size, scores, s):
    """scores[s : s + 16] = the products of one query row with sixteen keys, each read from its place, key after key."""
    s0 = _products_4(query, q, keys, offsets, t, shift, size)
    s1 = _products_4(query, q, keys, offsets, t + 4, shift, size)
    s2 = _products_4(query, q, keys, offsets, t + 8, shift, size)
    s3 = _products_4(query, q, keys, offsets, t + 12, shift, size)
    store(scores, s, pairwise(pairwise(s0, s1), pairwise(s2, s3)))


@njit
def _dot_16_copied(query, q, keys, size, scores, s):
    """The same sums in the same order for keys in scratch: there, sixteen keys abreast are faster."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = s11 = s12 = s13 = s14 = s15 = splat(0.0)
    for d in range(0, size, LANES):
        x = load(query, q + d)
        s0, s1 = fma(x, load(keys, d), s0), fma(x, load(keys, size + d), s1)
        s2, s3 = fma(x, load(keys, 2 * size + d), s2), fma(x, load(keys, 3 * size + d), s3)
        s4, s5 = fma(x, load(keys, 4 * size + d), s4), fma(x, load(keys, 5 * size + d), s5)
        s6, s7 = fma(x, load(keys, 6 * size + d), s6), fma(x, load(keys, 7 * size + d), s7)
        s8, s9 = fma(x, load(keys, 8 * size + d), s8), fma(x, load(keys, 9 * size + d), s9)
        s10, s11 = fma(x, load(keys, 10 * size + d), s10), fma(x, load(keys, 11 * size + d), s11)
        s12, s13 = fma(x, load(keys, 12 * size + d), s12), fma(x, load(keys, 13 * size + d), s13)
        s14, s15 = fma(x, load(keys, 14 * size + d), s14), fma(x, load(keys, 15 * size + d), s15)
    lower = pairwise(pairwise(pairwise(s0, s1), pairwise(s2, s3)), pairwise(pairwise(s4, s5), pairwise(s6, s7)))
    upper = pairwise(pairwise(pairwise(s8, s9), pairwise(s10, s11)), pairwise(pairwise(s12, s13), pairwise(s14, s15)))
    store(scores, s, pairwise(lower, upper))


@njit
def _softmax_tile(scores, s, count, visible):
    """Turns `count` scores from scores[s] on into exponentials, 0 from key `visible` on. Returns maximum and sum."""
    unseen = splat(-np.inf)
    top = unseen
    for t in range(0, count, LANES):
        x = first_lanes(visible - t, load(scores, s + t), unseen)
        store(scores, s + t, x)
        top = maximum(top, x)
    largest = highest(top)
    base = splat(largest if visible > 0 else np.float32(0.0))  # nothing seen: no maximum, and every weight is 0
    summed = splat(0.0)
    for t in range(0, count, LANES):
        weight = exp(sub(load(scores, s + t), base))
        store(scores, s + t, weight)
        summed = add(summed, weight)
    return largest, total(summed)


@njit
def _weigh_one_row(weights, w, source, offsets, t, shift, count, out, o, size):
    """out row += weight times V over `count` keys, for one row: V is used once, so it is read where it lies."""
    d = 0
    while d + 4 * LANES <= size:
        a0, a1 = load(out, o + d), load(out, o + d + LANES)
        a2, a3 = load(out, o + d + 2 * LANES), load(out, o + d + 3 * LANES)
        for j in range(count):
            p = splat(weights[w + j])
            v = offsets[t + j] + shift + d
            a0, a1 = fma(p, load(source, v), a0), fma(p, load(source, v + LANES), a1)
            a2, a3 = fma(p, load(source, v + 2 * LANES), a2), fma(p, load(source, v + 3 * LANES), a3)
        store(out, o + d, a0)
        store(out, o + d + LANES, a1)
        store(out, o + d + 2 * LANES, a2)
        store(out, o + d + 3 * LANES, a3)
        d += 4 * LANES
    while d < size:
        a0 = load(out, o + d)
        for j in range(count):
            a0 = fma(splat(weights[w + j]), load(source, offsets[t + j] + shift + d), a0)
        store(out, o + d, a0)
        d += LANES


@njit
def _weigh_four_rows(weights, w, values, count, out, o, size):
    """The same for four rows (their weights TILE apart), which share each register of V."""
    w1, w2, w3 = w + TILE, w + 2 * TILE, w + 3 * TILE
    o1, o2, o3 = o + size, o + 2 * size, o + 3 * size
    d = 0
    while d + 2 * LANES <= size:
        e = d + LANES
        a0, a1, a2, a3 = load(out, o + d), load(out, o1 + d), load(out, o2 + d), load(out, o3 + d)
        b0, b1, b2, b3 = load(out, o + e), load(out, o1 + e), load(out, o2 + e), load(out, o3 + e)
        for j in range(count):
            x, y = load(values, j * size + d), load(values, j * size + e)
            p, p1, p2, p3 = (
                splat(weights[w + j]),
                splat(weights[w1 + j]),
                splat(weights[w2 + j]),
                splat(weights[w3 + j]),
            )
            a0, a1, a2, a3 = fma(p, x, a0), fma(p1, x, a1), fma(p2, x, a2), fma(p3, x, a3)
            b0, b1, b2, b3 = fma(p, y, b0), fma(p1, y, b1), fma(p2, y, b2), fma(p3, y, b3)
        store(out, o + d, a0)
        store(out, o1 + d, a1)
        store(out, o2 + d, a2)
        store(out, o3 + d, a3)
        store(out, o + e, b0)
        store(out, o1 + e, b1)
        store(out, o2 + e, b2)
        store(out, o3 + e, b3)
        d += 2 * LANES
    if d < size:
        a0, a1, a2, a3 = load(out, o + d), load(out, o1 + d), load(out, o2 + d), load(out, o3 + d)
        for j in range(count):
            x = load(values, j * size + d)
            a0, a1 = fma(splat(weights[w + j]), x, a0), fma(splat(weights[w1 + j]), x, a1)
            a2, a3 = fma(splat(weights[w2 + j]), x, a2), fma(splat(weights[w3 + j]), x, a3)
        store(out, o + d, a0)
        store(out, o1 + d, a1)
        store(out, o2 + d, a2)
        store(out, o3 + d, a3)


@njit
def _merge(all_tops, all_sums, all_out, tops, sums, out, at, count, size):
    """Takes a tile's results (row r at `at` + r) into those of the tiles before. A sum of 0: the row saw nothing."""
    for r in range(count):
        a, b = r * size, (at + r) * size
        if sums[at + r] == 0.0:
            continue
        if all_sums[r] == 0.0:
            all_tops[r], all_sums[r] = tops[at + r], sums[at + r]
            for d in range(0, size, LANES):
                store(all_out, a + d, load(out, b + d))
            continue
        top = max(all_tops[r], tops[at + r])
        old, new = exp(splat(all_tops[r] - top)), exp(splat(tops[at + r] - top))
        all_tops[r] = top
        all_sums[r] = first(fma(splat(all_sums[r]), old, mul(splat(sums[at + r]), new)))
        for d in range(0, size, LANES):
            store(all_out, a + d, fma(load(all_out, a + d), old, mul(load(out, b + d), new)))


# -- an item -----------------------------------------------------------------------------------------------------------


@njit
def _padded(rows, head_dim):
    """Rows of scratch for each KV head of an item. One row of whole registers goes alone, others go by fours."""
    return 1 if rows == 1 and head_dim % LANES == 0 else (rows + 3) // 4 * 4


@njit
def _attend_tile(
    query, rows, row_0, group, before, kv, offsets, shift, head_0, heads, head_stride, start, count, head_dim, size,
    copy, scores, tops, sums, out,
):  # fmt: skip
    """Attention to the keys start … start + count - 1 alone: each row's maximum, sum, and out, not yet divided."""
    padded = _padded(rows, head_dim)
    for t in range(0, count, LANES):
        for h in range(heads):
            k = (head_0 + h) * head_stride
            if padded == 1:
                _prefetch_16_rows(kv, offsets, t + LANES, k, count, size)
                _dot_16_scattered(query, h * size, kv, offsets, t, k, size, scores, h * TILE + t)
            else:
                _read_16_rows(kv, offsets, t, k, min(LANES, count - t), head_dim, copy, size)
                for r in range(h * padded, h * padded + rows):
                    _dot_16_copied(query, r * size, copy, size, scores, r * TILE + t)
    for h in range(heads):
        for r in range(rows):
            visible = before + (row_0 + r) // group + 1 - start  # of this tile's keys
            at = h * padded + r
            tops[at], sums[at] = _softmax_tile(scores, at * TILE, count, visible)
    for d in range(0, heads * padded * size, LANES):
        store(out, d, splat(0.0))
    for t in range(0, count, LANES):
        n = min(LANES, count - t)
        for h in range(heads):
            v = (head_0 + h) * head_stride + shift
            if padded == 1:
                _prefetch_16_rows(kv, offsets, t + LANES, v, count, size)
                _weigh_one_row(scores, h * TILE + t, kv, offsets, t, v, n, out, h * size, size)
            else:
                _read_16_rows(kv, offsets, t, v, n, head_dim, copy, size)
                for r in range(h * padded, (h + 1) * padded, 4):  # what pads the rows is computed and not looked at
                    _weigh_four_rows(scores, r * TILE + t, copy, n, out, r * size, size)


@njit
def _write_rows(sums, acc, out, token_0, row_0, rows, group, head_0, heads, num_q_heads, head_dim, size):
    """Divides by the sums and rounds into the result (num_tokens, num_q_heads, head_dim)."""
    whole = head_dim // LANES * LANES
    padded = _padded(rows, head_dim)
    for h in range(heads):
        for r in range(rows):
            row, at = row_0 + r, h * padded + r
            o = ((token_0 + row // group) * num_q_heads + (head_0 + h) * group + row % group) * head_dim
            factor = splat(np.float32(1.0) / sums[at] if sums[at] != 0.0 else np.float32(0.0))
            for d in range(0, whole, LANES):
                store(out, o + d, mul(load(acc, at * size + d), factor))
            if whole < head_dim:
                store_first(head_dim - whole, out, o + whole, mul(load(acc, at * size + whole), factor))


# -- the work, shared out ----------------------------------------------------------------------------------------------


class Job(ctypes.Structure):
    """What the threads are told. Strides are in elements."""

    _fields_ = [(name, ctypes.c_int64) for name in (
        "query", "kv", "out", "tables", "starts", "contexts", "items", "counter", "tops", "sums", "acc",  # addresses
        "num_items", "split", "num_q_heads", "num_kv_heads", "head_dim", "block_size",
        "q_token", "q_head", "kv_block", "kv_value", "kv_head", "kv_slot", "table",  # strides
        "ticket",  # what `counter` points to
    )] + [("scale", ctypes.c_float)]  # fmt: skip


ITEM = 7  # sequence, first row, rows, first KV head, KV heads, first tile of keys, the tile after the last


@njit
def attend_items(job, query, kv, out):
    """What one thread does: items, until there are none left."""
    group = job.num_q_heads // job.num_kv_heads
    head_dim, block_size, num_items = job.head_dim, job.block_size, job.num_items
    size = (head_dim + LANES - 1) // LANES * LANES
    whole = head_dim // LANES * LANES
    counter = flat(job.counter, np.int64)
    items = carray(pointer(job.items, np.int64), (num_items, ITEM))
    tables, starts = flat(job.tables, np.int32), flat(job.starts, np.int32)
    contexts = flat(job.contexts, np.int32)
    part_tops = flat(job.tops, np.float32)
    part_sums, part_acc = flat(job.sums, np.float32), flat(job.acc, np.float32)
    q_rows = np.zeros(ROWS * size, np.float32)
    copy = np.zeros(LANES * size, np.float32)
    offsets = np.zeros(TILE, np.int64)
    scores = np.zeros(ROWS * TILE, np.float32)
    tops, sums, acc = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.float32), np.zeros(ROWS * size, np.float32)
    all_tops, all_sums, all_acc = (
        np.zeros(ROWS, np.float32),
        np.zeros(ROWS, np.float32),
        np.zeros(ROWS * size, np.float32),
    )

    while True:
        item = take_ticket(counter)
        if item >= num_items:
            break
        sequence, row_0, rows, head_0, heads, tile_0, tile_end = items[item]
        token_0, context = starts[sequence], contexts[sequence]
        before = context - (starts[sequence + 1] - token_0)  # keys that were there before this step
        end = before + (row_0 + rows - 1) // group + 1  # keys that the last row sees
        padded = _padded(rows, head_dim)
        all_sums[:] = 0.0

        for h in range(heads):
            for r in range(rows):
                row, at = row_0 + r, h * padded + r
                q = (token_0 + row // group) * job.q_token + ((head_0 + h) * group + row % group) * job.q_head
                for d in range(0, whole, LANES):
                    store(q_rows, at * size + d, mul(load(query, q + d), splat(job.scale)))
                if whole < size:
                    tail = load_first(head_dim - whole, query, q + whole)
                    store(q_rows, at * size + whole, mul(tail, splat(job.scale)))

        for tile in range(tile_0, tile_end):
            start = tile * TILE
            count = min(TILE, end - start)
            block, slot = start // block_size, start % block_size
            for t in range(count):
                offsets[t] = np.int64(tables[sequence * job.table + block]) * job.kv_block + slot * job.kv_slot
                slot += 1
                if slot == block_size:
                    block, slot = block + 1, 0
            for t in range(count, (count + LANES - 1) // LANES * LANES):
                offsets[t] = offsets[count - 1]  # a key that may be read; its score is not looked at
            _attend_tile(
                q_rows, rows, row_0, group, before, kv, offsets, job.kv_value, head_0, heads, job.kv_head, start, count,
                head_dim, size, copy, scores, tops, sums, acc,
            )  # fmt: skip
            if job.split:
                for r in range(heads * padded):
                    part_tops[item * ROWS + r], part_sums[item * ROWS + r] = tops[r], sums[r]
                for d in range(0, heads * padded * size, LANES):
                    store(part_acc, item * ROWS * size + d, load(acc, d))
            else:
                _merge(all_tops, all_sums, all_acc, tops, sums, acc, 0, heads * padded, size)
        if not job.split:
            _write_rows(
                all_sums, all_acc, out, token_0, row_0, rows, group, head_0, heads, job.num_q_heads, head_dim, size
            )


@njit
def merge_items(job, out):
    """Merges what the split items found, tile after tile, as one thread would have."""
    group, head_dim = job.num_q_heads // job.num_kv_heads, job.head_dim
    size = (head_dim + LANES - 1) // LANES * LANES
    items = carray(pointer(job.items, np.int64), (job.num_items, ITEM))
    starts = flat(job.starts, np.int32)
    part_tops = flat(job.tops, np.float32)
    part_sums, part_acc = flat(job.sums, np.float32), flat(job.acc, np.float32)
    tops, sums, acc = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.float32), np.zeros(ROWS * size, np.float32)
    for item in range(job.num_items):
        sequence, row_0, rows, head_0, heads, tile_0, _ = items[item]
        if tile_0 == 0:
            sums[:] = 0.0
        _merge(tops, sums, acc, part_tops, part_sums, part_acc, item * ROWS, heads * _padded(rows, head_dim), size)
        if item + 1 == job.num_items or items[item + 1, 5] == 0:  # the last tile of these rows
            _write_rows(
                sums, acc, out, starts[sequence], row_0, rows, group, head_0, heads, job.num_q_heads, head_dim, size
            )


@njit(cache=True, nogil=True)
def list_items(starts, contexts, group, num_kv_heads, head_dim, threads):
    """The list of work (num_items, ITEM), and whether tiles were split among items. No bit of a row depends on it."""
    rows_all = 0
    for i in range(len(contexts)):
        rows_all += (starts[i + 1] - starts[i]) * group
    # Fewer KV heads to an item where the list would be short: some four items for each thread even things out.
    fair = max(1, rows_all * num_kv_heads // (4 * threads))
    items = np.empty((0, 7), np.int64)
    split, longest = False, 0
    for turn in range(4):  # unsplit: count, then write; and, if that gave too few, the same again, split
        writing = turn % 2 == 1
        n = 0
        for i in range(len(contexts)):
            new = starts[i + 1] - starts[i]
            for row_0 in range(0, new * group, ROWS):
                rows = min(ROWS, new * group - row_0)
                many = max(1, min(ROWS // _padded(rows, head_dim), fair // rows))
                tiles = (contexts[i] - new + (row_0 + rows - 1) // group + TILE) // TILE
                longest = max(longest, tiles)
                for head_0 in range(0, num_kv_heads, many):
                    for tile in range(tiles if split else 1):
                        if writing:
                            tile_end = tile + 1 if split else tiles
                            items[n] = (i, row_0, rows, head_0, min(many, num_kv_heads - head_0), tile, tile_end)
                        n += 1
        if not writing:
            items = np.empty((n, 7), np.int64)
        elif split or threads == 1 or longest < 2 or n >= 2 * threads:
            break
        else:
            split = True
    return items, split
