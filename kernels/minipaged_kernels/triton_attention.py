"""Paged attention on a GPU, in Triton: one kernel for prefill and decode, a second that merges where contexts were
split.

A program takes `BLOCK_M` rows of one sequence and one KV head (a row is one token in one of the query heads that
share the KV head, so that a decode with grouped heads still fills a matrix instruction) and walks the keys in tiles
of `BLOCK_N`, which has nothing to do with the block size: each key's block is looked up by itself. Softmax is
online, in float32.

The grid is a bound that the host knows without asking the device: sequence i's programs begin at `query_starts[i] *
group // BLOCK_M + i`, so that `num_tokens * group // BLOCK_M + num_sequences` of them are enough for any division of
the tokens among the sequences, and a program finds its sequence by bisection. Nothing is read back, so a step can be
captured in a CUDA graph. Where the grid would leave the device idle, each context is cut into `splits` runs of
tiles, one program each, and `_merge` puts the partial results together.

What lies beyond a context (NaN, in debug mode) is never loaded: masked loads give 0.

Deliberately does not know: who owns a block, which layer this is, what a step is. Imports where there is no GPU;
where Triton itself is missing, importing says how to install it.
"""

# Triton reads the functions below itself; they have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import torch

try:
    import triton
    import triton.language as tl
except ImportError as error:  # pragma: no cover
    raise ImportError("minipaged_kernels: the Triton backend needs Triton (Linux): pip install triton") from error

# Triton decides at import whether `@triton.jit` compiles or interprets.
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_SPLITS = 16


@triton.jit(do_not_specialize=["num_sequences", "table_stride", "group"])
def attend(
    query, kv, tables, starts, contexts, out, part_acc, part_top, part_sum, scale,
    num_sequences, group, num_kv_heads, table_stride, q_token, q_head, kv_block, kv_value, kv_head_stride, kv_slot,
    num_tokens,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, SPLITS: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Grid (row blocks, KV heads, SPLITS). `scale` includes log2(e), for exp2 is the GPU's own exponential."""
    row_block, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)

    # The last sequence whose first row block is not behind this one.
    low, high = 0, num_sequences
    while high - low > 1:
        middle = (low + high) // 2
        if tl.load(starts + middle) * group // BLOCK_M + middle <= row_block:
            low = middle
        else:
            high = middle
    sequence = low
    token_0 = tl.load(starts + sequence)
    new = tl.load(starts + sequence + 1) - token_0  # m
    row_0 = (row_block - token_0 * group // BLOCK_M - sequence) * BLOCK_M
    if row_0 >= new * group:
        return
    before = tl.load(contexts + sequence) - new  # keys that were there before this step

    row = row_0 + tl.arange(0, BLOCK_M)  # (M)
    token, member = row // group, row % group
    row_mask = row < new * group
    d = tl.arange(0, BLOCK_D)
    d_mask = d < HEAD_DIM
    q_token_index = (token_0 + token).to(tl.int64)
    head = kv_head * group + member
    q_at = q_token_index[:, None] * q_token + head[:, None] * q_head + d[None, :]
    q = tl.load(query + q_at, mask=row_mask[:, None] & d_mask[None, :], other=0.0)  # (M, D)

    last_row = tl.minimum(row_0 + BLOCK_M, new * group) - 1
    end = before + last_row // group + 1  # keys that the block's last row sees
    tiles = tl.cdiv(end, BLOCK_N)
    tile_0 = tiles * split // SPLITS
    tile_end = tiles * (split + 1) // SPLITS

    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    table = tables + tl.cast(sequence, tl.int64) * table_stride
    kv += kv_head.to(tl.int64) * kv_head_stride
    for tile in range(tile_0, tile_end):
        key = tile * BLOCK_N + tl.arange(0, BLOCK_N)  # (N)
        key_mask = key < end
        block = tl.load(table + key // BLOCK_SIZE, mask=key_mask, other=0).to(tl.int64)
        kv_at = (block * kv_block + (key % BLOCK_SIZE) * kv_slot)[:, None] + d[None, :]  # (N, D)
        kv_mask = key_mask[:, None] & d_mask[None, :]
        k = tl.load(kv + kv_at, mask=kv_mask, other=0.0)
        v = tl.load(kv + kv_value + kv_at, mask=kv_mask, other=0.0)
        if WIDEN:  # the interpreter's product of two bfloat16 matrices is wrong
            scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee")
        else:
            scores = tl.dot(q, tl.trans(k), input_precision="ieee")  # (M, N)
        seen = key[None, :] <= before + token[:, None]
        scores = tl.where(seen & key_mask[None, :], scores * scale, float("-inf"))

        new_top = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(new_top == float("-inf"), 0.0, new_top)  # a row that has seen nothing yet: no -inf minus -inf
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        if WIDEN:
            acc += tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        else:
            acc = tl.dot(weights.to(v.dtype), v, acc, input_precision="ieee")
        top = new_top

    out_row = q_token_index * (num_kv_heads * group) + head  # (M), of num_tokens * num_q_heads
    mask = row_mask[:, None] & d_mask[None, :]
    if SPLITS == 1:
        result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
        tl.store(out + out_row[:, None] * HEAD_DIM + d[None, :], result.to(out.dtype.element_ty), mask=mask)
    else:
        part_row = split.to(tl.int64) * num_tokens * (num_kv_heads * group) + out_row
        tl.store(part_acc + part_row[:, None] * HEAD_DIM + d[None, :], acc, mask=mask)
        tl.store(part_top + part_row, top, mask=row_mask)
        tl.store(part_sum + part_row, total, mask=row_mask)


@triton.jit
def merge(
    part_acc, part_top, part_sum, out, num_rows,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Grid (num_tokens * num_q_heads): the weighted mean of a row's partial results."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, SPLITS).to(tl.int64) * num_rows + row  # (S)
    d = tl.arange(0, BLOCK_D)
    top = tl.load(part_top + part)
    highest = tl.max(top, 0)
    weight = tl.exp2(top - tl.where(highest == float("-inf"), 0.0, highest))  # 0 for a run that saw nothing
    total = tl.sum(tl.load(part_sum + part) * weight, 0)
    mask = (d < HEAD_DIM)[None, :] & (weight > 0.0)[:, None]
    acc = tl.load(part_acc + part[:, None] * HEAD_DIM + d[None, :], mask=mask, other=0.0)  # (S, D)
    result = tl.sum(acc * weight[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out + row * HEAD_DIM + d, result.to(out.dtype.element_ty), mask=d < HEAD_DIM)


class Shape(NamedTuple):
    """A launch: the sizes that are compiled in."""

    block_d: int
    block_m: int
    block_n: int
    splits: int
    num_warps: int
    num_stages: int


def choose(dtype: torch.dtype, head_dim: int, rows_per_sequence: float, splits: int = 1) -> Shape:
    """The launch for a kind of number, a head size and an average of query rows (tokens times group) per sequence.

    16 rows are the least that a matrix instruction takes, which suits decodes; 64 share more of what was read. float32,
    exact ("ieee"), has no matrix instruction and multiplies from registers, so its tiles are small.
    """
    block_d = max(16, triton.next_power_of_2(head_dim))
    if dtype == torch.float32:
        return Shape(block_d, 16, 32 if block_d <= 64 else 16, splits, 4 if block_d <= 64 else 8, 1)
    block_m = 16 if rows_per_sequence <= 16 else 64
    return Shape(block_d, block_m, 64 if block_d <= 128 else 32, splits, 4 if block_d * block_m < 8192 else 8, 2)


@functools.cache
def _processors(device: torch.device) -> int:
    """Streaming multiprocessors: how many programs it takes to keep the device busy, about."""
    return 8 if device.type == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count


def available() -> str | None:
    """None where this backend can run here, else why it cannot and what would change that."""
    if INTERPRETED or torch.cuda.is_available():
        return None
    return "no CUDA device; to run the kernels in Triton's interpreter (slowly, on the CPU): export TRITON_INTERPRET=1"


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
    *,
    splits: int | None = None,
) -> torch.Tensor:
    """Causal attention of each sequence's new tokens over its whole context, as `reference.paged_attention` says.

    Args:
        splits: runs into which each context is cut: a power of two up to `MAX_SPLITS`. By default, as many as the
            device needs to be busy.

    Raises:
        ValueError: a dtype that is not in `DTYPES`, two different ones, a last dimension that is not contiguous, or
            num_q_heads not a multiple of num_kv_heads.
    """
    num_tokens, num_q_heads, head_dim = query.shape
    num_kv_heads, block_size = kv_layer.shape[2:4]
    if query.dtype not in DTYPES or kv_layer.dtype != query.dtype:
        raise ValueError(
            f"triton.paged_attention: query is {query.dtype} and kv_layer {kv_layer.dtype}; both must be float32, "
            "bfloat16 or float16"
        )
    if num_q_heads % num_kv_heads:
        raise ValueError(f"paged_attention: {num_q_heads} query heads are not a multiple of {num_kv_heads} KV heads")
    if query.stride(-1) != 1 or kv_layer.stride(-1) != 1 or block_tables.stride(-1) != 1:
        raise ValueError(
            "triton.paged_attention: the last dimension of query, kv_layer and block_tables is not contiguous"
        )
    group = num_q_heads // num_kv_heads
    num_sequences = len(context_lens)
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    if not num_tokens:
        return out

    shape = choose(query.dtype, head_dim, num_tokens * group / num_sequences)
    row_blocks = num_tokens * group // shape.block_m + num_sequences
    if splits is None:
        # A tile is the least that a split can have; the table's width bounds the contexts, which only the device knows.
        most = min(MAX_SPLITS, block_tables.shape[1] * block_size // shape.block_n)
        wanted = 2 * _processors(query.device) // (row_blocks * num_kv_heads)
        splits = 1 << (max(1, min(most, wanted)).bit_length() - 1)  # a power of two, rounded down
    apart = (splits, num_tokens, num_q_heads) if splits > 1 else (0, 0, 0)
    part_acc = torch.empty(*apart, head_dim, dtype=torch.float32, device=query.device)
    part_top = torch.empty(apart, dtype=torch.float32, device=query.device)
    part_sum = torch.empty(apart, dtype=torch.float32, device=query.device)
    attend[(row_blocks, num_kv_heads, splits)](
        query, kv_layer, block_tables, query_starts, context_lens, out, part_acc, part_top, part_sum,
        scale * 1.4426950408889634,
        num_sequences, group, num_kv_heads, block_tables.stride(0), query.stride(0), query.stride(1),
        *kv_layer.stride()[:4], num_tokens,
        HEAD_DIM=head_dim, BLOCK_D=shape.block_d, BLOCK_M=shape.block_m, BLOCK_N=shape.block_n, BLOCK_SIZE=block_size,
        SPLITS=splits, WIDEN=INTERPRETED, num_warps=shape.num_warps, num_stages=shape.num_stages,
    )  # fmt: skip
    if splits > 1:
        merge[(num_tokens * num_q_heads,)](
            part_acc, part_top, part_sum, out, num_tokens * num_q_heads,
            HEAD_DIM=head_dim, BLOCK_D=shape.block_d, SPLITS=splits,
        )  # fmt: skip
    return out
