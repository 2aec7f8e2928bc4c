"""The ladder by the clock, on a GPU: milliseconds a kernel, and the cache's bytes a second, beside a copy's.

Only where there is a GPU: the interpreter's times say nothing. Knows the kernels by name only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch

from lessons.lesson07_triton_kernel.counting import Setting
from lessons.lesson07_triton_kernel.experiment import kernels

COPY_BYTES = 512 * 2**20  # far beyond any cache
# One long sequence, where programs are few, and many of them, where they are not.
STEPS = {
    "1 sequence of 16,384": Setting((16384,), 32, 8, 128, tile=64, splits=32, itemsize=2),
    "64 sequences of 2,048": Setting((2048,) * 64, 32, 8, 128, tile=64, splits=2, itemsize=2),
}
SMALL_STEPS = {"2 sequences of 512": Setting((512, 512), 8, 2, 64, tile=32, splits=4, itemsize=2)}


@dataclass(frozen=True, slots=True)
class Timing:
    """One kernel on one step.

    Args:
        step: which.
        kernel: the ladder's name, "engine" for `minipaged_kernels`, or "copy".
        milliseconds: for one layer.
        gigabytes_per_second: the bytes held, each counted once, however often they were read; of a copy, bytes read
            and bytes written.
    """

    step: str
    kernel: str
    milliseconds: float
    gigabytes_per_second: float


def time_ladder(answer: ModuleType, small: bool) -> list[Timing]:
    """Each kernel on each step, float16. Needs a GPU, and Triton's compiler."""
    from minipaged_kernels import triton_attention
    from triton.testing import do_bench

    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    milliseconds = do_bench(partial(target.copy_, source))
    found = [Timing("512 MiB", "copy", milliseconds, 2 * COPY_BYTES / milliseconds / 1e6)]
    del source, target
    for name, step in (SMALL_STEPS if small else STEPS).items():
        *tensors, scale = _inputs(step)
        query, kv_layer, tables, contexts = tensors
        starts = torch.arange(len(query) + 1, dtype=torch.int32, device="cuda")
        launches = {kernel: partial(attend, *tensors, scale) for kernel, attend in kernels(step, answer).items()}
        launches["engine"] = partial(
            triton_attention.paged_attention, query, kv_layer, tables, starts, contexts, scale
        )  # fmt: skip
        for kernel, launch in launches.items():
            milliseconds = do_bench(launch)
            found.append(Timing(name, kernel, milliseconds, step.held_bytes / milliseconds / 1e6))
    return found


def _inputs(step: Setting) -> tuple[Any, ...]:
    """query, kv_layer, block tables, contexts and scale; blocks scattered over the pool."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    blocks = [-(-context // step.block_size) for context in step.contexts]
    order = torch.randperm(sum(blocks), generator=generator, device="cuda").to(torch.int32)
    tables = torch.zeros(len(blocks), max(blocks), dtype=torch.int32, device="cuda")
    for i, (row, count) in enumerate(zip(tables, blocks, strict=True)):
        row[:count] = order[sum(blocks[:i]) : sum(blocks[:i]) + count]
    options: Any = {"dtype": torch.float16, "device": "cuda", "generator": generator}
    query = torch.randn(len(blocks), step.heads, step.head_dim, **options)
    kv_layer = torch.randn(sum(blocks), 2, step.kv_heads, step.block_size, step.head_dim, **options)
    contexts = torch.tensor(step.contexts, dtype=torch.int32, device="cuda")
    return query, kv_layer, tables, contexts, step.head_dim**-0.5
