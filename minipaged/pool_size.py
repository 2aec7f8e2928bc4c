"""How many blocks the device pool gets, and why. Arithmetic on bytes; measures nothing itself but ordinary memory.

No torch: who has an accelerator measures its free memory and passes the number in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from minipaged.config import EngineConfig, ModelConfig

SHARE_OF_FREE = 0.5  # of what is free once the weights are in; the rest is for activations, and for other programs


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The chosen number of blocks and one line that says why."""

    num_blocks: int
    reason: str


def choose_pool_size(engine: EngineConfig, model: ModelConfig, itemsize: int, free_bytes: int) -> PoolSize:
    """Size the device pool.

    `num_blocks` is taken as it is, `kv_cache_bytes` is divided by the bytes of a block. With neither, the pool takes
    half of the free memory, but never more than `max_sequences` sequences of full context could fill.

    Args:
        engine: the user's wishes.
        model: for the bytes of a token slot.
        itemsize: bytes of one number in the cache.
        free_bytes: memory that is free with the weights in.

    Raises:
        ValueError: the bytes do not hold a single block, or are more than are free.
    """
    block_bytes = engine.block_size * model.kv_bytes_per_token(itemsize)
    if engine.num_blocks is not None:
        if engine.num_blocks * block_bytes > free_bytes:
            raise ValueError(
                f"num_blocks {engine.num_blocks} of {block_bytes} bytes each are more than the {_human(free_bytes)} "
                "of memory that are free"
            )
        return PoolSize(engine.num_blocks, "as asked")
    if engine.kv_cache_bytes is not None:
        if engine.kv_cache_bytes > free_bytes:
            raise ValueError(
                f"kv_cache_bytes {engine.kv_cache_bytes} are more than the {_human(free_bytes)} of memory that are free"
            )
        num_blocks, reason = engine.kv_cache_bytes // block_bytes, f"{_human(engine.kv_cache_bytes)} as asked"
        source = f"kv_cache_bytes {engine.kv_cache_bytes}"
    else:
        affordable = int(free_bytes * SHARE_OF_FREE) // block_bytes
        useful = engine.max_sequences * -(-model.max_positions // engine.block_size)
        num_blocks = min(affordable, useful)
        reason = (
            f"room for {engine.max_sequences} sequences of full context"
            if useful <= affordable
            else f"{SHARE_OF_FREE:.0%} of the {_human(free_bytes)} that are free"
        )
        source = f"{SHARE_OF_FREE:.0%} of {_human(free_bytes)} free memory"
    if num_blocks < 1:
        raise ValueError(f"{source} do not hold one block of {block_bytes} bytes; give more, or a smaller block_size")
    return PoolSize(num_blocks, reason)


def choose_host_blocks(engine: EngineConfig, model: ModelConfig, itemsize: int, free_bytes: int) -> int:
    """Blocks of the host pool: as asked, in blocks or in bytes. `free_bytes` is ordinary memory.

    Raises:
        ValueError: the bytes do not hold a single block, or are more than are free.
    """
    block_bytes = engine.block_size * model.kv_bytes_per_token(itemsize)
    if max(engine.host_blocks * block_bytes, engine.host_cache_bytes or 0) > free_bytes:
        raise ValueError(f"the host pool would be larger than the {_human(free_bytes)} of memory that are free")
    if engine.host_cache_bytes is None:
        return engine.host_blocks
    if engine.host_cache_bytes < block_bytes:
        raise ValueError(
            f"host_cache_bytes {engine.host_cache_bytes} do not hold a block of {block_bytes} bytes; give more, or none"
        )
    return engine.host_cache_bytes // block_bytes


def describe_pool(size: PoolSize, host_blocks: int, block_size: int, block_bytes: int) -> str:
    """One line for a person: blocks, slots, bytes and the reason."""
    device = f"{size.num_blocks} blocks of {block_size} token slots, {_human(size.num_blocks * block_bytes)}"
    host = f"; host pool: {host_blocks} blocks, {_human(host_blocks * block_bytes)}" if host_blocks else ""
    return f"KV pool: {device} ({size.reason}){host}"


def free_host_bytes() -> int:
    """Ordinary memory that programs may still take, in bytes: what the system says, within the cgroup's limit."""
    available = _meminfo_available() or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            left = int(Path(limit).read_text()) - int(Path(used).read_text())
        except (OSError, ValueError):  # no such cgroup, or "max": no limit
            continue
        available = min(available, max(left, 0))
    return available


def _meminfo_available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _human(num_bytes: int) -> str:
    size = float(num_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
