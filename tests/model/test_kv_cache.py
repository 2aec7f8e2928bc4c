"""KVCache: its shape and bytes, and memory operations that happen in their order."""

from __future__ import annotations

import pytest
import torch

from minipaged.model.kv_cache import KVCache
from minipaged.plan import CopyBlock, Poison, SwapIn, SwapOut
from tests.tiny_models import tiny_config

CONFIG = tiny_config(num_layers=3, num_kv_heads=2)


def numbered(num_blocks: int, num_host_blocks: int = 0) -> KVCache:
    """Device block i holds i everywhere, host block i holds 100 + i."""
    cache = KVCache(CONFIG, num_blocks, 4, num_host_blocks=num_host_blocks)
    for block in range(num_blocks):
        cache.blocks[block] = block
    for block in range(num_host_blocks):
        cache.host_blocks[block] = 100 + block
    return cache


def contents(blocks: torch.Tensor) -> list[float]:
    for block in blocks:
        assert block.unique().numel() == 1  # whole blocks are moved
    return [block.unique().item() for block in blocks]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shape_and_bytes(dtype: torch.dtype) -> None:
    cache = KVCache(CONFIG, 5, 4, dtype)
    assert cache.layer(1).shape == (5, 2, 2, 4, 6)  # (num_blocks, 2, kv_heads, block_size, head_dim)
    assert cache.layer(1).data_ptr() != cache.layer(0).data_ptr()
    cache.layer(1).fill_(7)
    assert (cache.blocks[:, 1] == 7).all() and (cache.blocks[:, [0, 2]] == 0).all()
    assert cache.blocks[0].is_contiguous()
    assert cache.block_bytes == cache.blocks[0].numel() * dtype.itemsize == 2 * 3 * 2 * 4 * 6 * dtype.itemsize
    assert KVCache.bytes_per_block(CONFIG, 4, dtype) == cache.block_bytes


def test_operations_happen_in_their_order() -> None:
    cache = numbered(5)
    cache.apply([CopyBlock(1, 2), CopyBlock(2, 3), CopyBlock(4, 1)])
    assert contents(cache.blocks) == [0, 4, 1, 1, 4]
    assert cache.num_applied == 3


def test_swaps_give_the_same_bytes_back() -> None:
    cache = KVCache(CONFIG, 4, 4, num_host_blocks=2)
    cache.blocks.copy_(torch.randn_like(cache.blocks))
    before = cache.blocks.clone()
    cache.apply([SwapOut(0, 1), Poison(0), CopyBlock(2, 0), SwapOut(0, 0), SwapIn(1, 3), SwapIn(0, 1)])
    assert torch.equal(cache.blocks, before[[2, 2, 2, 0]])
    assert torch.equal(cache.host_blocks, before[[2, 0]])


def test_poison_is_nan_in_one_block() -> None:
    cache = numbered(3)
    cache.apply([Poison(1)])
    assert cache.blocks[1].isnan().all()
    assert contents(cache.blocks[[0, 2]]) == [0, 2]


@pytest.mark.parametrize("op", [CopyBlock(0, 3), CopyBlock(-1, 0), SwapOut(0, 1), SwapIn(-1, 0), Poison(3)])
def test_a_block_that_is_not_there_is_named_and_the_count_says_how_far_it_got(op) -> None:
    cache = numbered(3, num_host_blocks=1)
    with pytest.raises(IndexError, match=r"block (3|-1|1) is not among the (3|1)"):
        cache.apply([CopyBlock(1, 0), op, CopyBlock(2, 1)])
    assert cache.num_applied == 1
    assert contents(cache.blocks) == [1, 1, 2]


def test_debug_mode_starts_with_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIPAGED_DEBUG", "1")
    assert KVCache(CONFIG, 2, 4).blocks.isnan().all()
    monkeypatch.setenv("MINIPAGED_DEBUG", "0")
    assert (KVCache(CONFIG, 2, 4).blocks == 0).all()


@pytest.mark.parametrize("sizes", [(0, 4, 0), (2, 0, 0), (2, 4, -1), (True, 4, 0), (2, 4.0, 0)])
def test_impossible_sizes_are_refused(sizes) -> None:
    num_blocks, block_size, num_host_blocks = sizes
    with pytest.raises(ValueError, match="must be a whole number"):
        KVCache(CONFIG, num_blocks, block_size, num_host_blocks=num_host_blocks)
