"""What it does cost on this machine: copy a request's blocks out and in again, or compute its tokens again.

Measured, so it differs from run to run. Without an accelerator, "out" is to another place in the memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from minipaged import LLM, SamplingParams
from minipaged.cli.random_checkpoint import SIZES, write_checkpoint
from minipaged.model.kv_cache import KVCache
from minipaged.plan import MemoryOp, SwapIn, SwapOut


@dataclass(frozen=True, slots=True)
class MachineCost:
    """Seconds for one request's tokens.

    Args:
        model: which.
        num_tokens: of the request.
        token_bytes: K and V of one token.
        recompute_seconds: one forward pass over all of them.
        swap_seconds: for each block size, out and in again.
    """

    model: str
    num_tokens: int
    token_bytes: int
    recompute_seconds: float
    swap_seconds: dict[int, float]


def measure(small: bool, device: str, block_sizes: tuple[int, ...], num_tokens: int) -> MachineCost:
    """The shipped model when `small`; else a random one of 124 M parameters, which is in no cache."""
    with TemporaryDirectory() as folder:
        model: str | Path = "tiny-gpt" if small else write_checkpoint(Path(folder), SIZES["124M"])
        llm = LLM(model, device=device, num_blocks=-(-num_tokens // 16) + 1, block_size=16, share_prefixes=False)
    prompt = [i % llm.model_config.vocab_size for i in range(num_tokens)]
    params = SamplingParams(max_tokens=1, temperature=0)
    recompute = _best_seconds(lambda: llm.generate([prompt], params, progress=False), device, tries=1)
    swap = {
        block_size: _best_seconds(_round_trip(llm, block_size, num_tokens), device, tries=3)
        for block_size in block_sizes
    }
    name = "tiny-gpt" if small else "a random 124 M model"
    itemsize = llm.model.dtype.itemsize
    return MachineCost(name, num_tokens, llm.model_config.kv_bytes_per_token(itemsize), recompute, swap)


def _round_trip(llm: LLM, block_size: int, num_tokens: int) -> Callable[[], None]:
    """All blocks of the request out, and in again, as the engine would be told to do it: last block first."""
    num_blocks = -(-num_tokens // block_size)
    cache = KVCache(
        llm.model_config,
        num_blocks,
        block_size,
        llm.model.dtype,
        llm.kv_cache.blocks.device,
        num_host_blocks=num_blocks,
        copy_blocks=llm.backend.copy_blocks,
    )
    blocks = range(num_blocks)
    out: list[MemoryOp] = [SwapOut(block, num_blocks - 1 - block) for block in reversed(blocks)]
    back: list[MemoryOp] = [SwapIn(num_blocks - 1 - block, block) for block in blocks]
    return lambda: cache.apply([*out, *back])


def _best_seconds(call: Callable[[], object], device: str, tries: int) -> float:
    """The quickest of some calls, after one that warms up: others may use the machine, too."""
    times = []
    for _ in range(tries + 1):
        began = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:])
