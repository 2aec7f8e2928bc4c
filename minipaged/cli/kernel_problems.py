"""Random attention problems with known answers: what the kernels' tests and `bench kernels --full` are made of.

The oracle is the reference in float64 on the same rounded inputs. Knows shapes; knows no backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from minipaged_kernels import reference

TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
HEADS = ((8, 8), (8, 1), (12, 4), (40, 40), (64, 8), (34, 2))  # query heads, KV heads
HEAD_DIMS = (32, 64, 80, 96, 112, 120, 128, 192, 256)
BLOCK_SIZES = (8, 16, 32)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
Mix = tuple[tuple[int, int], ...]  # (new tokens, context) of each sequence
MIXES: tuple[Mix, ...] = (
    ((1, 1328), (5, 18), (129, 463)),
    ((1, 523), (1, 37), (1, 2011)),
    ((1, 31), (1, 32), (1, 33), (32, 32), (2, 65)),
    ((1, 96), (97, 97), (3, 95)),
    tuple((1, 1 + 37 * i % 300) for i in range(64)),
    ((300, 300),),
)
Case = tuple[tuple[int, int], int, int, Mix, torch.dtype]  # heads, head_dim, block_size, mix, dtype


@dataclass
class Problem:
    """The arguments of one `paged_attention`, on the CPU."""

    query: torch.Tensor  # (num_tokens, num_q_heads, head_dim)
    kv_layer: torch.Tensor  # (num_blocks, 2, num_kv_heads, block_size, head_dim), a view of one layer of three
    block_tables: torch.Tensor  # (num_sequences, max_blocks)
    query_starts: torch.Tensor  # (num_sequences + 1)
    context_lens: torch.Tensor  # (num_sequences)
    scale: float

    def solve(self, paged_attention: Callable[..., torch.Tensor], device: str) -> torch.Tensor:
        """This problem's answer by a backend, on the CPU."""
        tensors = (self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens)
        return paged_attention(*(t.to(device) for t in tensors), self.scale).cpu()

    def error(self, answer: torch.Tensor) -> float:
        """Largest difference from the oracle; NaN anywhere is infinitely wrong."""
        expected = reference.paged_attention(
            self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens, self.scale,
            compute_dtype=torch.float64,
        )  # fmt: skip
        difference = (answer.double() - expected).abs().max().item()
        return difference if difference == difference else float("inf")


def make(
    heads: tuple[int, int], head_dim: int, block_size: int, mix: Mix, dtype: torch.dtype, seed: int = 0
) -> Problem:
    """Sequences over a shuffled pool. Every slot that belongs to none of them holds NaN, the tails of blocks too."""
    generator = torch.Generator().manual_seed(seed)
    num_q_heads, num_kv_heads = heads
    blocks = [-(-context // block_size) for _, context in mix]
    num_blocks = sum(blocks) + 2
    kv = torch.randn((num_blocks, 3, 2, num_kv_heads, block_size, head_dim), generator=generator).to(dtype)
    order = torch.randperm(num_blocks, generator=generator).to(torch.int32)
    tables = torch.full((len(mix), max(blocks) + 1), num_blocks - 1, dtype=torch.int32)
    owned = torch.zeros(num_blocks, block_size, dtype=torch.bool)
    taken = 0
    for i, (_, context) in enumerate(mix):
        tables[i, : blocks[i]] = order[taken : taken + blocks[i]]
        for j in range(blocks[i]):
            owned[order[taken + j], : context - j * block_size] = True
        taken += blocks[i]
    kv.permute(0, 4, 1, 2, 3, 5)[~owned] = float("nan")  # (num_blocks, block_size, …)
    starts = torch.tensor([0] + [new for new, _ in mix]).cumsum(0).to(torch.int32)
    return Problem(
        query=torch.randn(int(starts[-1]), num_q_heads, head_dim, generator=generator).to(dtype),
        kv_layer=kv[:, 1],
        block_tables=tables,
        query_starts=starts,
        context_lens=torch.tensor([context for _, context in mix], dtype=torch.int32),
        scale=head_dim**-0.5,
    )


def pairwise_cover(mixes: tuple[Mix, ...] = MIXES) -> list[Case]:
    """Cases in which every pair of values of two of the five axes occurs at least once."""
    return [
        (heads, head_dim, BLOCK_SIZES[(h + d) % 3], mixes[(h + d // 3 + 2 * d) % len(mixes)], DTYPES[(d // 3 + h) % 3])
        for h, heads in enumerate(HEADS)
        for d, head_dim in enumerate(HEAD_DIMS)
    ]
