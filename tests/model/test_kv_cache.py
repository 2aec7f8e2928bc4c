"""KVCache: its shape and bytes, and memory operations that happen in their order."""

from __future__ import annotations

import pytest
import torch

from minipaged.model.kv_cache import KVCache
from minipaged.model.kv_cache import _batches as cache_batches
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
        cache.apply([SwapOut(1, 0), SwapIn(0, 0), op, SwapOut(2, 0)])
    assert 0 < cache.num_applied <= 2, "what goes together is done together or not at all"
    assert contents(cache.blocks) == [[0, 1, 2], [1, 1, 2]][cache.num_applied - 1]


def test_neighbours_go_together_and_the_log_holds() -> None:
    """Chains within one kind, and runs of neighbours: as if each operation had ended before the next began."""
    cache = numbered(6, num_host_blocks=6)
    log = [
        SwapOut(0, 0), SwapOut(1, 1), SwapOut(2, 3), SwapOut(3, 3),
        CopyBlock(4, 0), CopyBlock(0, 1), CopyBlock(1, 2), CopyBlock(5, 4),
        SwapIn(1, 5), SwapIn(3, 5), SwapIn(0, 3),
    ]  # fmt: skip
    cache.apply(log)
    assert contents(cache.blocks) == [4, 4, 4, 0, 5, 3]
    assert contents(cache.host_blocks) == [0, 1, 102, 3, 104, 105]
    assert cache.num_applied == len(log)


def test_what_was_done_and_not_counted_may_be_done_again() -> None:
    """An interruption between the copies and their count: the group is repeated, and nothing is different."""
    log = [CopyBlock(0, 1), CopyBlock(2, 0), CopyBlock(1, 2), SwapOut(0, 0), SwapOut(1, 0), SwapIn(0, 1)]
    whole = numbered(3, num_host_blocks=1)
    whole.apply(log)
    for k in range(len(log)):
        cache = numbered(3, num_host_blocks=1)
        cache.apply(log[:k])
        (first, *_) = cache_batches(log[k:])
        cache.apply(first)  # done, and not counted
        cache.apply(log[k:])
        assert contents(cache.blocks) == contents(whole.blocks)
        assert contents(cache.host_blocks) == contents(whole.host_blocks)


def test_a_step_that_failed_is_made_good_by_the_next() -> None:
    """What `num_applied` says was not done goes in front of the next log, and the result is that of one log."""
    log = [SwapOut(0, 0), SwapOut(1, 1), CopyBlock(2, 0), SwapIn(1, 2), SwapIn(0, 1)]
    whole = numbered(3, num_host_blocks=2)
    whole.apply(log)
    for k in range(len(log) + 1):
        cache = numbered(3, num_host_blocks=2)
        cache.apply(log[:k])
        cache.apply(log[k:])
        assert contents(cache.blocks) == contents(whole.blocks)
        assert contents(cache.host_blocks) == contents(whole.host_blocks)


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
