"""Memory in pages of 2 MiB: what is read from end to end, again and again, is read faster so.

The processor looks an address up page by page, and what fetches ahead stops at a page's end; in pages of 4 KiB a weight
of 100 MB ends 25,000 times. Best effort: it changes no number, and where the system cannot do it nothing happens.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from collections.abc import Sequence

import torch

PAGE_BYTES = 2 * 2**20
_MADV_COLLAPSE = 25  # Linux 6.1 and later: gather these pages into a huge one, now


def gather(address: int, num_bytes: int) -> int:
    """Puts a piece of this process's memory into huge pages, with what lies beside it in its first and last page.

    Returns:
        How many huge pages it lies in now; 0 where the system has none to give.
    """
    if sys.platform != "linux":
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    first = address // PAGE_BYTES * PAGE_BYTES
    return sum(madvise(page, PAGE_BYTES, _MADV_COLLAPSE) == 0 for page in range(first, address + num_bytes, PAGE_BYTES))


def zeros(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A CPU tensor of zeros, in huge pages if it fills some; all of its memory is taken now."""
    num_bytes = math.prod(shape) * dtype.itemsize
    if num_bytes < PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.zeros(shape, dtype=dtype)
    memory = mmap.mmap(-1, num_bytes + PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(memory, dtype=torch.uint8)  # keeps the memory
    first = -whole.data_ptr() % PAGE_BYTES
    return whole[first : first + num_bytes].zero_().view(dtype).view(*shape)
