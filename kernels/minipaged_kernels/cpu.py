"""The three kernels on the CPU, in Numba: blocks are read where they lie, by every core.

The arithmetic of attention, and why each row's bits depend on its own sequence only, is in `cpu_attention.py`; here
tensors become addresses and strides, threads are set to work (`team.py`), and what was compiled is kept. What the
threads run is compiled as a C function: whoever has the threads can call it by its address, and Numba optimises it once
and not in each of the three functions that it makes of a parallel loop (6 s instead of 15).

Deliberately does not know: who owns a block, or which layer this is. To be called from one thread at a time.
"""

# Numba's functions have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import ctypes
import functools
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from numba import carray, cfunc, njit, types

from minipaged_kernels import cpu_linear, reference, team
from minipaged_kernels.cpu_attention import ROWS, Job, attend_items, list_items, merge_items
from minipaged_kernels.simd import LANES, flat, load, load_first, prefetch, store, store_first, take_ticket

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# -- K and V into their slots, blocks onto blocks ----------------------------------------------------------------------


class Move(ctypes.Structure):
    """What the threads are told. Lengths and strides are in bytes, or, to write words, in words."""

    _fields_ = [(name, ctypes.c_int64) for name in (
        "key", "value", "kv", "slots", "counter",  # addresses; for a copy of blocks: source, -, destination, pairs
        "count", "heads", "row", "block_size",  # `count` tokens or pairs; `row` is a head's or a block's length
        "key_token", "key_head", "value_token", "value_head", "block", "kv_value", "kv_head", "kv_slot",  # strides
        "parts",  # of a block, for a copy
        "ticket",  # what `counter` points to
    )]  # fmt: skip


TOKENS = 16  # that a thread takes at a time


@njit(forceinline=True)
def _copy_words(source, a, destination, b, count):
    """`count` float32 from source[a] on, or what takes as much room, to destination[b] on."""
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        store(destination, b + i, load(source, a + i))
    if whole < count:
        store_first(count - whole, destination, b + whole, load_first(count - whole, source, a + whole))


@njit(forceinline=True)
def _copy_bytes(source, a, destination, b, count):
    for i in range(count):
        destination[b + i] = source[a + i]


@njit(forceinline=True)
def _write_tokens(job, key, value, kv, copy_row):
    """What one thread does of `write_kv`: tokens, until there are none left.

    Head by head, so that tokens that are neighbours in a block are written one behind the other; and the next head's
    place is asked for in advance, since a store that misses the cache holds up those behind it.
    """
    slots, counter = flat(job.slots, np.int64), flat(job.counter, np.int64)
    line = 64 // kv.itemsize
    while True:
        start = take_ticket(counter) * TOKENS
        if start >= job.count:
            break
        for head in range(job.heads):
            for token in range(start, min(start + TOKENS, job.count)):
                place = slots[token] // job.block_size * job.block + slots[token] % job.block_size * job.kv_slot
                to = place + head * job.kv_head
                for i in range(0, job.row, line):
                    prefetch(kv, to + job.kv_head + i)
                    prefetch(kv, to + job.kv_head + job.kv_value + i)
                copy_row(key, token * job.key_token + head * job.key_head, kv, to, job.row)
                copy_row(value, token * job.value_token + head * job.value_head, kv, to + job.kv_value, job.row)


@njit
def _copy_slices(job):
    """What one thread does of `copy_blocks`: the whole log, but of each block only a slice. So none need wait."""
    source, destination, pairs = flat(job.key, np.uint8), flat(job.kv, np.uint8), flat(job.slots, np.int64)
    counter = flat(job.counter, np.int64)
    while True:
        part = take_ticket(counter)
        if part >= job.parts:
            break
        first_byte, end = part * job.row // job.parts, (part + 1) * job.row // job.parts
        for n in range(job.count):
            a, b = pairs[2 * n] * job.block, pairs[2 * n + 1] * job.kv_value
            if a != b or job.key != job.kv:
                for i in range(first_byte, end):
                    destination[b + i] = source[a + i]


# -- compiled when first needed ----------------------------------------------------------------------------------------


# Numba's cache notices a change of the file that holds the compiled function, not of those whose functions it calls. A
# variable of the enclosing function is part of the cache's key, so this one stands for the text of all three files.
_SOURCES = zlib.crc32(
    b"".join((Path(__file__).parent / name).read_bytes() for name in ("cpu.py", "cpu_attention.py", "simd.py"))
)

_NUMBERS = {torch.float32: types.float32, torch.bfloat16: types.uint16, torch.float16: types.int16}
_JOB = types.void(types.CPointer(numba.from_dtype(np.dtype(Job))))
_MOVE = types.void(types.CPointer(numba.from_dtype(np.dtype(Move))))


def _attend_source(query_dtype: torch.dtype, kv_dtype: torch.dtype) -> Callable[[Any], None]:
    query_kind, kv_kind, sources = _NUMBERS[query_dtype], _NUMBERS[kv_dtype], _SOURCES

    def attend(address):
        if sources != 0:  # always: named so that it is part of the key
            job = carray(address, 1)[0]
            attend_items(job, flat(job.query, query_kind), flat(job.kv, kv_kind), flat(job.out, query_kind))

    return attend


@functools.cache
def _attend(query_dtype: torch.dtype, kv_dtype: torch.dtype) -> Any:
    """Address of the attention for these kinds of numbers, compiled now or taken from Numba's cache on disk."""
    return cfunc(_JOB, cache=True)(_attend_source(query_dtype, kv_dtype)).address


@functools.cache
def _merge_split(query_dtype: torch.dtype) -> Any:
    kind, sources = _NUMBERS[query_dtype], _SOURCES

    def merge(address):
        if sources != 0:
            job = carray(address, 1)[0]
            merge_items(job, flat(job.out, kind))

    return cfunc(_JOB, cache=True)(merge).address


@functools.cache
def _write(unit: int) -> Any:
    """Writes numbers of `unit` bytes: 4 where all lengths are so many whole words, else 1."""
    kind, copy_row, sources = (
        (types.float32, _copy_words, _SOURCES) if unit == 4 else (types.uint8, _copy_bytes, _SOURCES)
    )

    def write(address):
        if sources != 0:
            job = carray(address, 1)[0]
            _write_tokens(job, flat(job.key, kind), flat(job.value, kind), flat(job.kv, kind), copy_row)

    return cfunc(_MOVE, cache=True)(write).address


@functools.cache
def _copy() -> Any:
    sources = _SOURCES

    def copy(address):
        if sources != 0:
            _copy_slices(carray(address, 1)[0])

    return cfunc(_MOVE, cache=True)(copy).address


def is_compiled(dtype: torch.dtype) -> bool:
    """Whether Numba's cache on disk has this dtype's attention for this machine. Else the first call takes seconds."""
    from numba.core.caching import FunctionCache
    from numba.core.registry import cpu_target

    # The index alone is read: Numba has no public way to ask without loading the machine code.
    cache = FunctionCache(_attend_source(dtype, dtype))
    return cache._index_key(_JOB, cpu_target.target_context.codegen()) in cache._cache_file._load_index()


def warm_up(dtype: torch.dtype) -> float:
    """Compiles the kernels for a dtype, or loads them from the disk: most of them by calling them once.

    Returns:
        The seconds that it took.
    """
    began = time.perf_counter()
    kv = torch.zeros(2, 2, 1, LANES, LANES, dtype=dtype)
    token = torch.zeros(1, 1, LANES, dtype=dtype)
    write_kv(token, token, kv, torch.zeros(1, dtype=torch.int64))
    copy_blocks(kv, kv, torch.tensor([[0, 1]]))
    starts, table = torch.tensor([0, 1], dtype=torch.int32), torch.zeros(1, 1, dtype=torch.int32)
    paged_attention(token, kv, table, starts, starts[1:], 1.0)
    _merge_split(dtype)
    cpu_linear.compiled()
    return time.perf_counter() - began


# -- the three functions of every backend ------------------------------------------------------------------------------


def _require(name: str, **tensors: torch.Tensor) -> None:
    """Refuses tensors that these kernels cannot read."""
    for what, tensor in tensors.items():
        if not tensor.is_cpu:
            raise ValueError(f"cpu.{name}: {what} is on {tensor.device}; this backend reads the CPU's memory only")
        if tensor.dtype not in DTYPES:
            raise ValueError(f"cpu.{name}: {what} is {tensor.dtype}; it must be float32, bfloat16 or float16")


def _run(threads: int, function: int, job: Job | Move) -> None:
    address = ctypes.addressof(job)
    job.counter = address + type(job).ticket.offset
    team.run(threads, function, address)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]  # a third of the time that `array.ctypes.data` takes
    return address


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Causal attention of each sequence's new tokens over its whole context, as `reference.paged_attention` says.

    Computed in float32, rounded to the query's dtype at the end; the cache may have another. Where int32 tensors with
    contiguous rows come in, nothing is copied.

    Raises:
        ValueError: another device, a dtype that is not in `DTYPES`, or num_q_heads not a multiple of num_kv_heads.
    """
    _require("paged_attention", query=query, kv_layer=kv_layer)
    num_q_heads, head_dim = query.shape[1:]
    num_kv_heads, block_size = kv_layer.shape[2:4]
    if num_q_heads % num_kv_heads:
        raise ValueError(f"paged_attention: {num_q_heads} query heads are not a multiple of {num_kv_heads} KV heads")
    query, kv_layer, block_tables = (
        t if t.stride(-1) == 1 else t.contiguous() for t in (query, kv_layer, block_tables)
    )
    block_tables = block_tables.to(torch.int32)
    query_starts, context_lens = query_starts.int().contiguous(), context_lens.int().contiguous()
    out = query.new_empty(query.shape)  # (num_tokens, num_q_heads, head_dim)

    threads = team.num_threads()
    group = num_q_heads // num_kv_heads
    items, split = list_items(query_starts.numpy(), context_lens.numpy(), group, num_kv_heads, head_dim, threads)
    apart = len(items) * ROWS if split else 0
    tops, sums = np.empty(apart, np.float32), np.empty(apart, np.float32)
    acc = np.empty(apart * (-(-head_dim // LANES) * LANES), np.float32)
    job = Job(
        *(t.data_ptr() for t in (query, kv_layer, out, block_tables, query_starts, context_lens)),
        _address(items), 0, _address(tops), _address(sums), _address(acc),
        len(items), split, num_q_heads, num_kv_heads, head_dim, block_size,
        query.stride(0), query.stride(1), *kv_layer.stride()[:4], block_tables.stride(0), 0, scale,
    )  # fmt: skip
    _run(threads, _attend(query.dtype, kv_layer.dtype), job)
    if split:
        _run(1, _merge_split(query.dtype), job)
    return out


def write_kv(key: torch.Tensor, value: torch.Tensor, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """Writes each token's K and V into its slot, in place, as `reference.write_kv` says.

    Raises:
        ValueError: another device, or a dtype that is not in `DTYPES`.
    """
    _require("write_kv", key=key, value=value, kv_layer=kv_layer)
    key, value = key.to(kv_layer.dtype), value.to(kv_layer.dtype)
    key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (key, value))
    if kv_layer.stride(-1) != 1:
        raise ValueError(f"cpu.write_kv: kv_layer's last stride is {kv_layer.stride(-1)}; it must be 1")
    slots = slots.long().contiguous()
    tokens, heads, head_dim = key.shape
    size = kv_layer.element_size()
    lengths = [n * size for n in (head_dim, *key.stride()[:2], *value.stride()[:2], *kv_layer.stride()[:4])]
    unit = 4 if all(n % 4 == 0 for n in lengths) else 1
    row, *strides = (n // unit for n in lengths)
    job = Move(
        key.data_ptr(), value.data_ptr(), kv_layer.data_ptr(), slots.data_ptr(), 0,
        tokens, heads, row, kv_layer.shape[3], *strides,
    )  # fmt: skip
    # One thread or all: a team that changes its size is made anew.
    _run(team.num_threads() if tokens >= 2 * TOKENS else 1, _write(unit), job)


def copy_blocks(source: torch.Tensor, destination: torch.Tensor, pairs: torch.Tensor) -> None:
    """Copies whole blocks, pair by pair, as if each copy had ended before the next began: see `reference.copy_blocks`.

    Blocks that are not one piece of memory each, or not on the CPU, are left to the reference.
    """
    whole = all(t.device.type == "cpu" and t[0].is_contiguous() for t in (source, destination) if len(t))
    if not whole or source.dtype != destination.dtype:
        reference.copy_blocks(source, destination, pairs)
        return
    if not len(pairs):
        return
    pairs = pairs.long().contiguous()
    size, threads = source.element_size(), team.num_threads()
    job = Move(
        key=source.data_ptr(), kv=destination.data_ptr(), slots=pairs.data_ptr(), count=len(pairs), parts=threads,
        row=source[0].numel() * size, block=source.stride(0) * size, kv_value=destination.stride(0) * size,
    )  # fmt: skip
    _run(threads, _copy(), job)
