"""The oracle itself, against attention written row by row and head by head in float64."""

from __future__ import annotations

import math

import pytest
import torch
from minipaged_kernels import reference

SCALE = 0.3


class Case:
    """Random K and V scattered over a pool, everything that no sequence owns being NaN."""

    def __init__(self, lengths, heads, head_dim, block_size, *, dtype=torch.float32, layer_view=False, seed=0) -> None:
        generator = torch.Generator().manual_seed(seed)
        num_q_heads, num_kv_heads = heads
        contexts = [context for _, context in lengths]
        needed = [math.ceil(context / block_size) for context in contexts]
        num_blocks = sum(needed) + 3
        shape = (num_blocks, 3, 2, num_kv_heads, block_size, head_dim)
        pool = torch.full(shape, float("nan"), dtype=dtype)
        self.kv_layer = pool[:, 1] if layer_view else torch.full_like(pool[:, 1].contiguous(), float("nan"))

        shuffled = torch.randperm(num_blocks, generator=generator).tolist()
        # Entries past the context name a block that is not there: they must not be looked at.
        self.block_tables = torch.full((len(lengths), max(needed) + 2), 2**30, dtype=torch.int32)
        self.keys, self.values, slots = [], [], []
        for i, context in enumerate(contexts):
            table = [shuffled.pop() for _ in range(needed[i])]
            self.block_tables[i, : needed[i]] = torch.tensor(table)
            slots += [table[p // block_size] * block_size + p % block_size for p in range(context)]
            self.keys.append(torch.randn(context, num_kv_heads, head_dim, generator=generator).to(dtype))
            self.values.append(torch.randn(context, num_kv_heads, head_dim, generator=generator).to(dtype))
        self.slots = torch.tensor(slots)
        self.query_starts = torch.tensor([0, *(new for new, _ in lengths)]).cumsum(0).int()
        self.context_lens = torch.tensor(contexts, dtype=torch.int32)
        self.query = torch.randn(int(self.query_starts[-1]), num_q_heads, head_dim, generator=generator).to(dtype)
        reference.write_kv(torch.cat(self.keys), torch.cat(self.values), self.kv_layer, self.slots)

    def run(self, **options) -> torch.Tensor:
        return reference.paged_attention(
            self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens, SCALE, **options
        )

    def expected(self) -> torch.Tensor:
        """One row, one head, one dot product at a time."""
        out = torch.empty(self.query.shape, dtype=torch.float64)
        num_q_heads, num_kv_heads = self.query.shape[1], self.keys[0].shape[1]
        for i, context in enumerate(self.context_lens.tolist()):
            first, last = self.query_starts[i : i + 2].tolist()
            for j in range(last - first):
                visible = context - (last - first) + j + 1
                for h in range(num_q_heads):
                    kv_head = h // (num_q_heads // num_kv_heads)
                    key = self.keys[i][:visible, kv_head].double()  # (visible, head_dim)
                    value = self.values[i][:visible, kv_head].double()  # (visible, head_dim)
                    weights = (key @ self.query[first + j, h].double() * SCALE).softmax(dim=0)  # (visible)
                    out[first + j, h] = weights @ value
        return out


RAGGED = [(1, 1), (1, 17), (5, 18), (4, 4), (16, 16), (3, 32), (1, 33)]


@pytest.mark.parametrize("layer_view", [False, True])
@pytest.mark.parametrize("heads", [(4, 4), (6, 2), (3, 1)])
@pytest.mark.parametrize(("head_dim", "block_size"), [(8, 4), (5, 16), (3, 1)])
def test_ragged_batches_over_a_pool_full_of_nan(heads, head_dim, block_size, layer_view) -> None:
    case = Case(RAGGED, heads, head_dim, block_size, layer_view=layer_view)
    got = case.run()
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), case.expected(), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float16, 2e-3), (torch.bfloat16, 1.6e-2)]
)
def test_dtypes(dtype, tolerance) -> None:
    case = Case(RAGGED, (4, 2), 8, 4, dtype=dtype)
    got = case.run()
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), case.expected(), rtol=0, atol=tolerance)


def test_a_wider_precision_on_request_is_not_rounded_back() -> None:
    case = Case(RAGGED, (4, 2), 8, 4, dtype=torch.bfloat16)
    got = case.run(compute_dtype=torch.float64)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, case.expected(), rtol=0, atol=1e-12)


def test_scores_far_from_zero_do_not_overflow() -> None:
    case = Case(RAGGED, (2, 2), 8, 4)
    case.query *= 1e4
    assert case.run().isfinite().all()


def test_query_heads_that_no_kv_head_divides_are_refused() -> None:
    case = Case([(1, 3)], (3, 2), 4, 4)
    with pytest.raises(ValueError, match="3 query heads are not a multiple of 2 KV heads"):
        case.run()


def test_write_kv_touches_its_slots_only() -> None:
    pool = torch.zeros(4, 3, 2, 2, 4, 5)  # (num_blocks, num_layers, 2, kv_heads, block_size, head_dim)
    key, value = torch.randn(3, 2, 5), torch.randn(3, 2, 5)  # (tokens, kv_heads, head_dim)
    reference.write_kv(key, value, pool[:, 2], torch.tensor([13, 0, 6], dtype=torch.int32))
    expected = torch.zeros_like(pool)
    for token, (block, offset) in enumerate([(3, 1), (0, 0), (1, 2)]):
        expected[block, 2, 0, :, offset] = key[token]
        expected[block, 2, 1, :, offset] = value[token]
    assert torch.equal(pool, expected)


def test_copies_happen_one_after_the_other() -> None:
    """Conformance 38: the chain 1→2, 2→3 carries block 1's content to block 3."""
    blocks = torch.arange(5.0)[:, None].repeat(1, 6)  # (num_blocks, anything)
    reference.copy_blocks(blocks, blocks, torch.tensor([[1, 2], [2, 3], [4, 1]]))
    assert blocks[:, 0].tolist() == [0, 4, 1, 1, 4]


def test_copies_between_two_pools() -> None:
    source, destination = torch.randn(3, 4), torch.zeros(2, 4)
    reference.copy_blocks(source, destination, torch.tensor([[2, 0], [1, 1]]))
    assert torch.equal(destination, source[[2, 1]])
    reference.copy_blocks(source, destination, torch.empty(0, 2, dtype=torch.int64))
