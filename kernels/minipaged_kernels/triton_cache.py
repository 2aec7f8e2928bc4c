"""Writing K and V into their slots and copying whole blocks, in Triton: bytes move, nothing is computed.

Copies are done in the order of the log without waiting for each: `batches` cuts the log before every operation that
must see, or must not disturb, an earlier one, and what lies between two cuts is one launch, for no two of its copies
meet.

Deliberately does not know: why a block is copied. Host and device pools differ only in where their tensors lie; a
copy between them is torch's, and asynchronous where the host's memory is pinned.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

try:
    import triton
    import triton.language as tl
except ImportError as error:  # pragma: no cover
    raise ImportError("minipaged_kernels: the Triton backend needs Triton (Linux): pip install triton") from error

COPY_BYTES = 4096  # that a program moves


@triton.jit(do_not_specialize=["num_tokens"])
def write(
    key, value, kv, slots, num_tokens, key_token, key_head, value_token, value_head, kv_block, kv_value, kv_head,
    kv_slot, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Grid (num_tokens, num_kv_heads)."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    mask = d < HEAD_DIM
    at = kv + slot // BLOCK_SIZE * kv_block + head * kv_head + slot % BLOCK_SIZE * kv_slot + d
    k = tl.load(key + token * key_token + head * key_head + d, mask=mask)
    v = tl.load(value + token * value_token + head * value_head + d, mask=mask)
    tl.store(at, k.to(kv.dtype.element_ty), mask=mask)
    tl.store(at + kv_value, v.to(kv.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["block_numbers"])
def copy(
    source, destination, pairs, source_block, destination_block, block_numbers,
    NUMBERS: tl.constexpr,
):  # fmt: skip
    """Grid (pairs, pieces of a block)."""
    pair, piece = tl.program_id(0), tl.program_id(1)
    a = tl.load(pairs + 2 * pair).to(tl.int64) * source_block
    b = tl.load(pairs + 2 * pair + 1).to(tl.int64) * destination_block
    i = piece.to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    mask = i < block_numbers
    tl.store(destination + b + i, tl.load(source + a + i, mask=mask), mask=mask)


def write_kv(key: torch.Tensor, value: torch.Tensor, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """Writes each token's K and V into its slot, in place, as `reference.write_kv` says.

    Raises:
        ValueError: a last dimension that is not contiguous.
    """
    if not key.stride(-1) == value.stride(-1) == kv_layer.stride(-1) == 1:
        raise ValueError("triton.write_kv: the last dimension of key, value and kv_layer is not contiguous")
    tokens, heads, head_dim = key.shape
    if tokens:
        write[(tokens, heads)](
            key, value, kv_layer, slots, tokens, *key.stride()[:2], *value.stride()[:2], *kv_layer.stride()[:4],
            HEAD_DIM=head_dim, BLOCK_D=triton.next_power_of_2(head_dim), BLOCK_SIZE=kv_layer.shape[3], num_warps=1,
        )  # fmt: skip


def batches(pairs: Iterable[Sequence[int]], *, one_pool: bool) -> Iterator[list[tuple[int, int]]]:
    """Cuts a log of copies into runs whose copies may happen in any order, or at once.

    A run ends before an operation whose destination was read or written in it, or whose source was written in it.

    Args:
        pairs: (source block, destination block) in the order of the log.
        one_pool: both name blocks of the same tensor. Between two tensors only a destination written twice matters.
    """
    run: list[tuple[int, int]] = []
    read: set[int] = set()
    written: set[int] = set()
    for source, destination in pairs:
        if destination in written or (one_pool and (destination in read or source in written)):
            yield run
            run, read, written = [], set(), set()
        run.append((source, destination))
        read.add(source)
        written.add(destination)
    if run:
        yield run


def copy_blocks(source: torch.Tensor, destination: torch.Tensor, pairs: torch.Tensor) -> None:
    """Copies whole blocks, pair by pair, as if each copy had ended before the next began: see `reference.copy_blocks`.

    `pairs` is best on the host: the log is cut there.

    Raises:
        ValueError: blocks that are not one piece of memory each, or two dtypes.
    """
    if not len(pairs):
        return
    if source.dtype != destination.dtype or not (source[0].is_contiguous() and destination[0].is_contiguous()):
        raise ValueError("triton.copy_blocks: a block must be one piece of memory, of the same dtype in both tensors")
    if source.device != destination.device:
        for a, b in pairs.tolist():
            destination[b].copy_(source[a], non_blocking=True)  # in the order of one stream, so in the order of the log
        return
    numbers = source[0].numel()
    each = COPY_BYTES // source.element_size()
    one_pool = source.data_ptr() == destination.data_ptr()
    for run in batches(pairs.tolist(), one_pool=one_pool):
        moved = torch.tensor([(a, b) for a, b in run if a != b or not one_pool])
        if len(moved):
            copy[(len(moved), -(-numbers // each))](
                source, destination, moved.to(source.device), source.stride(0), destination.stride(0), numbers,
                NUMBERS=each, num_warps=4,
            )  # fmt: skip
