"""A linear layer for few rows on the CPU, in Numba: reads oneDNN's packed weight where it lies, adds in oneDNN's order.

With few rows a layer is as fast as its weight can be read, and oneDNN reads it at half the memory's speed. So for few
rows the multiplication is done here. The weight need not be kept twice: oneDNN's packed form is panels of `PANEL`
outputs, (out / PANEL, in, PANEL), the last one padded with zeros. And a row's bits are the same as in a batch of
oneDNN's: each output is one chain of fused multiply-adds over `depth` inputs in their order, the chains of an output
are added in their order, then the bias.

Both facts are oneDNN's own business and may differ from release to release and from processor to processor. So neither
is assumed: `PackedWeight.read` compares products with oneDNN's, bit by bit, and gives up where they differ.

Deliberately does not know: which layer this is, or what is done with the result.
"""

# Numba's functions have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import ctypes
import functools
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
import torch
from numba import carray, cfunc, njit, types

from minipaged_kernels import team
from minipaged_kernels.simd import (
    LANES,
    add,
    flat,
    fma,
    load,
    load_first,
    prefetch,
    prefetch_once,
    splat,
    store,
    store_first,
    take_ticket,
)

PANEL = 4 * LANES  # outputs that lie side by side in oneDNN's packed weight
ROWS = 3  # rows for which this is faster than oneDNN, multiplied at a time: with four registers of outputs, 12 sums
AHEAD = 16  # inputs for whose weights is asked in advance: 4 KiB


class Job(ctypes.Structure):
    """What the threads are told. Strides are in elements."""

    _fields_ = [(name, ctypes.c_int64) for name in (
        "x", "weight", "bias", "out", "counter",  # addresses; bias: 0 for none
        "rows", "inputs", "outputs", "depth", "x_row",
        "ticket",  # what `counter` points to
    )]  # fmt: skip


@njit
def _chain_1(x, x0, weight, w, k_0, k_1):
    """Four registers of sums for one row: x[k_0 : k_1] times the panel, input after input."""
    a = b = c = d = splat(0.0)
    for k in range(k_0, k_1):
        at = w + k * PANEL
        for i in range(0, PANEL, LANES):
            prefetch_once(weight, at + AHEAD * PANEL + i)
        p = splat(x[x0 + k])
        a, b = fma(p, load(weight, at), a), fma(p, load(weight, at + LANES), b)
        c, d = fma(p, load(weight, at + 2 * LANES), c), fma(p, load(weight, at + 3 * LANES), d)
    return a, b, c, d


@njit
def _chain_3(x, x0, x1, x2, weight, w, k_0, k_1):
    """The same for three rows, which share each register of the weight."""
    a0 = b0 = c0 = d0 = a1 = b1 = c1 = d1 = a2 = b2 = c2 = d2 = splat(0.0)
    for k in range(k_0, k_1):
        at = w + k * PANEL
        for i in range(0, PANEL, LANES):
            prefetch(weight, at + AHEAD * PANEL + i)
        a, b = load(weight, at), load(weight, at + LANES)
        c, d = load(weight, at + 2 * LANES), load(weight, at + 3 * LANES)
        p = splat(x[x0 + k])
        a0, b0, c0, d0 = fma(p, a, a0), fma(p, b, b0), fma(p, c, c0), fma(p, d, d0)
        p = splat(x[x1 + k])
        a1, b1, c1, d1 = fma(p, a, a1), fma(p, b, b1), fma(p, c, c1), fma(p, d, d1)
        p = splat(x[x2 + k])
        a2, b2, c2, d2 = fma(p, a, a2), fma(p, b, b2), fma(p, c, c2), fma(p, d, d2)
    return a0, b0, c0, d0, a1, b1, c1, d1, a2, b2, c2, d2


@njit
def _finish(out, o, bias, n, count, first_chain, a, b, c, d, add_bias):
    """Adds a chain's sums to those of the chains before it, in out[o : o + count]; after the last chain, bias[n:]."""
    for i in range(0, PANEL, LANES):
        left = count - i
        if left <= 0:
            break
        s = a if i == 0 else b if i == LANES else c if i == 2 * LANES else d
        if left >= LANES:
            if not first_chain:
                s = add(load(out, o + i), s)
            if add_bias:
                s = add(s, load(bias, n + i))
            store(out, o + i, s)
        else:
            if not first_chain:
                s = add(load_first(left, out, o + i), s)
            if add_bias:
                s = add(s, load_first(left, bias, n + i))
            store_first(left, out, o + i, s)


@njit
def _multiply_panels(job):
    """What one thread does: panels, until there are none left."""
    x, weight, out = flat(job.x, np.float32), flat(job.weight, np.float32), flat(job.out, np.float32)
    bias = flat(job.bias if job.bias != 0 else job.x, np.float32)  # without one, nothing is read
    counter = flat(job.counter, np.int64)
    while True:
        n = take_ticket(counter) * PANEL
        if n >= job.outputs:
            break
        w, count = n * job.inputs, min(PANEL, job.outputs - n)
        for k_0 in range(0, job.inputs, job.depth):
            k_1 = min(job.inputs, k_0 + job.depth)
            first, biased = k_0 == 0, k_1 == job.inputs and job.bias != 0
            if job.rows == 1:
                a, b, c, d = _chain_1(x, 0, weight, w, k_0, k_1)
                _finish(out, n, bias, n, count, first, a, b, c, d, biased)
                continue
            for r in range(0, job.rows, 3):
                r1, r2 = min(r + 1, job.rows - 1), min(r + 2, job.rows - 1)  # a row too few is done twice
                a0, b0, c0, d0, a1, b1, c1, d1, a2, b2, c2, d2 = _chain_3(
                    x, r * job.x_row, r1 * job.x_row, r2 * job.x_row, weight, w, k_0, k_1
                )
                _finish(out, r * job.outputs + n, bias, n, count, first, a0, b0, c0, d0, biased)
                if r + 1 < job.rows:
                    _finish(out, r1 * job.outputs + n, bias, n, count, first, a1, b1, c1, d1, biased)
                if r + 2 < job.rows:
                    _finish(out, r2 * job.outputs + n, bias, n, count, first, a2, b2, c2, d2, biased)


_JOB = types.void(types.CPointer(numba.from_dtype(np.dtype(Job))))
_SOURCES = zlib.crc32(b"".join((Path(__file__).parent / name).read_bytes() for name in ("cpu_linear.py", "simd.py")))


@functools.cache
def compiled() -> Any:
    """Address of what the threads run, compiled now or taken from Numba's cache on disk (see `cpu.py`)."""
    sources = _SOURCES

    def multiply(address):
        if sources != 0:  # always: named so that it is part of the cache's key
            _multiply_panels(carray(address, 1)[0])

    return cfunc(_JOB, cache=True)(multiply).address


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A float32 weight in oneDNN's packed form, as this module can read it.

    Args:
        packed: oneDNN's tensor; kept, because its memory is read.
        address: of its first panel.
        depth: inputs in a chain of multiply-adds.
        inputs, outputs: the layer's sizes.
        bias: (outputs) float32, or None.
    """

    max_rows: ClassVar[int] = ROWS

    packed: torch.Tensor
    address: int
    depth: int
    inputs: int
    outputs: int
    bias: torch.Tensor | None

    @classmethod
    def read(cls, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> PackedWeight | None:
        """Looks at a packed weight.

        Args:
            packed: what oneDNN made of `weight`.
            weight: (outputs, inputs) float32.
            bias: (outputs) float32, or None.

        Returns:
            None where its form is not panels, or where oneDNN adds in an order that is not known here.
        """
        if weight.dtype != torch.float32 or not hasattr(torch.ops.mkldnn, "data_ptr"):
            return None
        outputs, inputs = weight.shape
        if torch.ops.mkldnn._nbytes(packed) != -(-outputs // PANEL) * PANEL * inputs * 4:
            return None
        address = torch.ops.mkldnn.data_ptr(packed)
        # A product takes in every weight, so a place or an order that is wrong shows in it.
        x = torch.randn(4 * ROWS, inputs, generator=torch.Generator().manual_seed(0))  # (rows, inputs)
        theirs = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")  # (rows, outputs)
        for depth in (512, 1024, 256, inputs):
            candidate = cls(packed, address, depth, inputs, outputs, bias)
            if all(torch.equal(candidate.multiply(x[:rows]), theirs[:rows]) for rows in range(1, ROWS + 1)):
                return candidate
        return None

    def multiply(self, x: torch.Tensor) -> torch.Tensor:
        """x times the weight, plus the bias.

        Args:
            x: (rows, inputs) float32. Any number of rows is right; up to `max_rows` it is faster than oneDNN.

        Returns:
            (rows, outputs) float32.
        """
        if x.stride(-1) != 1:
            x = x.contiguous()
        out = x.new_empty(x.shape[0], self.outputs)  # (rows, outputs)
        job = Job(
            x.data_ptr(), self.address, 0 if self.bias is None else self.bias.data_ptr(), out.data_ptr(), 0,
            x.shape[0], self.inputs, self.outputs, self.depth, x.stride(0),
        )  # fmt: skip
        address = ctypes.addressof(job)
        job.counter = address + Job.ticket.offset
        team.run(team.num_threads(), compiled(), address)
        return out
