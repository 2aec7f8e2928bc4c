"""Every backend against the oracle: conformance 34 to 38, and the CPU path's promise that a row's bits are its own."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from minipaged_kernels import reference

from minipaged.cli.kernel_problems import (
    BLOCK_SIZES,
    DTYPES,
    HEAD_DIMS,
    HEADS,
    MIXES,
    TOLERANCE,
    Problem,
    make,
    pairwise_cover,
)

from .backends import BACKENDS, SHORT_MIXES, load, no_triton, solve


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> SimpleNamespace:
    return load(request.param)


def mixes_for(backend: SimpleNamespace) -> tuple:
    """Short ones where a long one takes minutes (Triton's interpreter) or says little (the oracle, in float32)."""
    slow = backend.name == "reference" or (backend.name == "triton" and backend.device == "cpu")
    return SHORT_MIXES if slow else MIXES


def test_the_cover_has_every_pair() -> None:
    for mixes in (MIXES, SHORT_MIXES):
        axes = (HEADS, HEAD_DIMS, BLOCK_SIZES, mixes, DTYPES)
        for i, j in itertools.combinations(range(len(axes)), 2):
            seen = {(case[i], case[j]) for case in pairwise_cover(mixes)}
            assert seen == set(itertools.product(axes[i], axes[j]))


@pytest.mark.parametrize("heads", HEADS, ids=str)
def test_34_35_36_against_the_oracle_among_nan(backend: SimpleNamespace, heads: tuple[int, int]) -> None:
    for number, case in enumerate(pairwise_cover(mixes_for(backend))):
        if case[0] == heads:
            problem = make(*case, seed=number)
            assert problem.error(solve(problem, backend)) < TOLERANCE[case[-1]], case


@pytest.mark.parametrize("mix,dtype", list(zip(MIXES, DTYPES * 2, strict=True)))
def test_35_ragged_mixes(backend: SimpleNamespace, mix: tuple, dtype: torch.dtype) -> None:
    problem = make((3, 1), 32, 16, mix, dtype)
    assert problem.error(solve(problem, backend)) < TOLERANCE[dtype]


def test_35_context_a_multiple_of_the_block_and_one_off(backend: SimpleNamespace) -> None:
    for block_size in (1, 5, 16):
        edges = tuple((new, 64 + off) for off in (-1, 0, 1) for new in (1, 2))
        problem = make((2, 2), 32, block_size, edges, torch.float32)
        assert problem.error(solve(problem, backend)) < TOLERANCE[torch.float32]


def test_37_offsets_beyond_two_to_the_31(backend: SimpleNamespace) -> None:
    """The pool is never touched but for three blocks, so its pages cost nothing."""
    shape = (2, 2, 16, 64)
    num_blocks = 2**31 // (2 * 2 * 16 * 64) + 40
    pool = torch.empty(num_blocks, *shape, dtype=torch.bfloat16, device=backend.device)
    small = torch.zeros(3, *shape, dtype=torch.bfloat16)
    table = torch.tensor([[num_blocks - 3, 5, num_blocks - 1]], dtype=torch.int32)
    key, value = torch.randn(2, 40, 2, 64).bfloat16()
    slots = torch.arange(40)
    reference.write_kv(key, value, small, slots)

    far = table[0, slots // 16].long() * 16 + slots % 16
    backend.write_kv(*(t.to(backend.device) for t in (key, value)), pool, far.to(backend.device))
    problem = Problem(
        torch.randn(2, 4, 64).bfloat16(),
        small,
        torch.tensor([[0, 1, 2]]),
        torch.tensor([0, 2]),
        torch.tensor([40]),
        0.1,
    )
    arguments = (problem.query, pool, table, problem.query_starts.int(), problem.context_lens.int())
    answer = backend.paged_attention(*(t.to(backend.device) for t in arguments), problem.scale).cpu()
    assert problem.error(answer) < TOLERANCE[torch.bfloat16]

    backend.copy_blocks(pool, pool, torch.tensor([[num_blocks - 1, num_blocks - 2]]))
    assert torch.equal(pool[num_blocks - 2].cpu()[:, :, :8], small[2][:, :, :8])


def test_write_kv_into_a_strided_layer(backend: SimpleNamespace) -> None:
    for dtype, head_dim, tokens in itertools.product(DTYPES, (64, 80), (1, 40)):
        qkv = torch.randn(tokens, 3, 4, head_dim).to(dtype)  # K and V are slices of a projection
        slots = torch.randperm(6 * 16)[:tokens]
        expected = torch.zeros(6, 3, 2, 4, 16, head_dim, dtype=dtype)
        cache = expected.clone().to(backend.device)
        reference.write_kv(qkv[:, 1], qkv[:, 2], expected[:, 1], slots)
        moved = qkv.to(backend.device)
        backend.write_kv(moved[:, 1], moved[:, 2], cache[:, 1], slots.to(backend.device))
        assert torch.equal(cache.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_38_chains_do_what_the_log_says(backend: SimpleNamespace, dtype: torch.dtype) -> None:
    pool = torch.randn(5, 2, 2, 3, 8, 32).to(dtype).to(backend.device)
    content = pool[1].clone()
    backend.copy_blocks(pool, pool, torch.tensor([[1, 2], [2, 3]]))
    assert torch.equal(pool[2], content) and torch.equal(pool[3], content)

    host = torch.zeros(3, 2, 2, 3, 8, 32, dtype=dtype)
    before = pool.clone()
    backend.copy_blocks(pool, host, torch.tensor([[4, 0], [0, 2], [1, 0]]))  # swap out; 4's copy is overwritten by 1's
    pool.fill_(float("nan"))
    backend.copy_blocks(host, pool, torch.tensor([[0, 1], [2, 0]]))
    assert torch.equal(pool[1], before[1]) and torch.equal(pool[0], before[0])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_38_any_log(pairs: list[tuple[int, int]]) -> None:
    start = torch.arange(6 * 2 * 8, dtype=torch.float32).view(6, 1, 2, 1, 2, 4)
    expected = start.clone()
    reference.copy_blocks(expected, expected, torch.tensor(pairs))
    for name in ("cpu", "triton"):
        backend = load(name)
        pool = start.clone().to(backend.device)
        backend.copy_blocks(pool, pool, torch.tensor(pairs))
        assert torch.equal(pool.cpu(), expected), name


@no_triton
def test_batches_end_where_they_must() -> None:
    from minipaged_kernels.triton_cache import batches

    assert list(batches([(0, 1), (0, 2), (3, 4)], one_pool=True)) == [[(0, 1), (0, 2), (3, 4)]]
    assert list(batches([(1, 2), (2, 3)], one_pool=True)) == [[(1, 2)], [(2, 3)]]  # source written in it
    assert list(batches([(1, 2), (3, 1)], one_pool=True)) == [[(1, 2)], [(3, 1)]]  # destination read in it
    assert list(batches([(1, 2), (3, 2)], one_pool=True)) == [[(1, 2)], [(3, 2)]]  # destination written in it
    assert list(batches([(1, 2), (3, 1)], one_pool=False)) == [[(1, 2), (3, 1)]]  # 1 here and 1 there are two blocks


@no_triton
@pytest.mark.parametrize("splits", [2, 8])
def test_contexts_split_over_programs(splits: int) -> None:
    backend = load("triton")
    whole = backend.paged_attention
    backend.paged_attention = lambda *arguments: whole(*arguments, splits=splits)
    for dtype, heads in ((torch.float32, (2, 1)), (torch.bfloat16, (17, 1))):
        problem = make(heads, 80, 8, ((1, 200), (1, 3), (4, 90)), dtype)
        assert problem.error(solve(problem, backend)) < TOLERANCE[dtype]


def test_nothing_to_do(backend: SimpleNamespace) -> None:
    problem = make((2, 2), 32, 8, ((0, 9), (1, 9), (0, 1)), torch.float32)  # padding sequences, as in a CUDA graph
    assert problem.error(solve(problem, backend)) < TOLERANCE[torch.float32]
    empty = make((2, 2), 32, 8, ((0, 9),), torch.float32)
    assert solve(empty, backend).shape == (0, 2, 32)
    backend.copy_blocks(empty.kv_layer, empty.kv_layer, torch.empty(0, 2, dtype=torch.int64))


def test_refusals(backend: SimpleNamespace) -> None:
    problem = make((3, 2), 32, 8, ((1, 9),), torch.float32)
    with pytest.raises(ValueError, match="3 query heads are not a multiple of 2 KV heads"):
        solve(problem, backend)


# -- the CPU path's own promises ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("heads,head_dim", [((6, 6), 64), ((12, 4), 64), ((34, 2), 80), ((2, 1), 120)], ids=str)
def test_a_rows_bits_are_its_own(heads: tuple[int, int], head_dim: int, dtype: torch.dtype) -> None:
    """Prefilled at once, in chunks, by tokens; alone or among others; on one thread or all; anywhere in the pool."""
    backend = load("cpu")
    length = 530  # three tiles of keys, the last of them not full
    together = make(heads, head_dim, 16, ((40, 40), (length, length), (1, 333)), dtype, seed=3)
    expected = solve(together, backend)[40 : 40 + length]
    mine = together.query[40 : 40 + length]

    def rows(start: int, new: int, problem: Problem = together, sequence: int = 1) -> torch.Tensor:
        return backend.paged_attention(
            mine[start : start + new], problem.kv_layer, problem.block_tables[sequence : sequence + 1],
            torch.tensor([0, new]), torch.tensor([start + new]), problem.scale,
        )  # fmt: skip

    # The same content in another pool, with another block size.
    elsewhere = make(heads, head_dim, 8, ((1, 100), (length, length)), dtype, seed=4)
    table, other_table = together.block_tables[1].long(), elsewhere.block_tables[1].long()
    positions = torch.arange(length)
    content = together.kv_layer[table[positions // 16], :, :, positions % 16]  # (length, 2, kv_heads, head_dim)
    slots = other_table[positions // 8] * 8 + positions % 8
    reference.write_kv(content[:, 0], content[:, 1], elsewhere.kv_layer, slots)

    threads = torch.get_num_threads()
    try:
        for count in {1, threads}:
            torch.set_num_threads(count)
            for chunk in (1, 3, 16, 257, length):
                for start in range(0, length, chunk if chunk > 3 else 37):
                    new = min(chunk, length - start)
                    assert torch.equal(rows(start, new), expected[start : start + new]), (count, chunk, start)
                    assert torch.equal(rows(start, new, elsewhere), expected[start : start + new]), "block size"
    finally:
        torch.set_num_threads(threads)


def test_one_long_context_is_split_without_a_trace() -> None:
    """One sequence, one KV head: an item is then one tile, merged afterwards; on one thread it is not."""
    backend = load("cpu")
    problem = make((1, 1), 64, 16, ((1, 2000),), torch.float32)
    threads = torch.get_num_threads()
    split = solve(problem, backend)
    torch.set_num_threads(1)
    try:
        assert torch.equal(solve(problem, backend), split)
    finally:
        torch.set_num_threads(threads)


def test_cpu_reads_a_narrow_cache_for_a_wide_query() -> None:
    problem = make((4, 2), 64, 16, ((3, 50), (1, 20)), torch.bfloat16)
    problem.query = torch.randn(problem.query.shape)
    assert problem.error(solve(problem, load("cpu"))) < TOLERANCE[torch.float32]


def test_cpu_says_what_it_cannot_read() -> None:
    problem = make((2, 2), 32, 8, ((1, 9),), torch.float32)
    problem.query = problem.query.double()
    with pytest.raises(ValueError, match=r"query is torch.float64; it must be float32, bfloat16 or float16"):
        solve(problem, load("cpu"))


def test_warm_up_leaves_the_cache_warm() -> None:
    from minipaged_kernels import cpu

    assert cpu.warm_up(torch.float32) > 0
    assert cpu.is_compiled(torch.float32)


def test_exponential_of_lanes() -> None:
    from minipaged_kernels import simd
    from numba import njit

    @njit
    def apply(x: np.ndarray, y: np.ndarray) -> None:
        for i in range(0, x.size, 16):
            simd.store(y, i, simd.exp(simd.load(x, i)))

    x = np.linspace(-87, 88, 16000).astype(np.float32)
    x[:4] = -np.inf, np.nan, 0, -88
    y = np.empty_like(x)
    apply(x, y)
    assert y[0] == 0 and np.isnan(y[1]) and y[2] == 1 and y[3] == 0
    exact = np.exp(x[4:].astype(np.float64))
    assert np.abs(y[4:] / exact - 1).max() < 1.5e-7
