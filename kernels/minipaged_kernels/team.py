"""A compiled C function on every thread at once: on torch's own threads where they can be had, else on Numba's.

torch's matrix products and our attention take turns, dozens of times a step. A thread that has just worked waits for
more with its core kept busy, so two teams on the same cores stand in each other's way. torch's OpenMP runtime has one
entry by which C code starts a parallel region (`GOMP_parallel`, in GNU's libgomp and in Intel's and LLVM's likeness of
it); through that, both use one team. Knows nothing of what the function does.
"""

# Numba's functions have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path

import numba
import torch
from numba import njit, prange

from minipaged_kernels.simd import call

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # what a thread runs: void function(void *job)


def num_threads() -> int:
    """As many as torch uses, and no more than Numba may."""
    # Asking Numba itself would start its threads.
    return min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def run(threads: int, function: int, job: int) -> None:
    """Calls the function at an address, with the job at another, once in each of `threads` threads; waits for all.

    To be called from one thread at a time, which is Numba's rule.
    """
    if threads == 1:
        _FUNCTION(function)(job)
    elif (parallel := _torch_team()) is not None:
        parallel(function, job, threads, 0)
    else:
        _start_numba()
        _on_numba(threads, function, job)


@functools.cache
def _torch_team() -> Callable[[int, int, int, int], None] | None:
    """`GOMP_parallel` of the runtime that torch has loaded; None where it is another kind of runtime, or not found."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    home = Path(torch.__file__).parent
    for path in sorted([*home.glob("lib/lib*omp*"), *home.parent.glob("torch.libs/lib*omp*")]):
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)  # only what is in use already
            parallel = library.GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        parallel.restype = None
        return parallel
    return None


@functools.cache
def _start_numba() -> None:
    """Numba's start may set OpenMP's number of threads, which is torch's number too: put that back."""
    before = torch.get_num_threads()
    numba.get_num_threads()
    torch.set_num_threads(before)


@njit(parallel=True, nogil=True, cache=True)
def _on_numba(threads, function, job):
    for _ in prange(threads):
        call(function, job)
