"""The backends under test, and random problems for them. The oracle: the reference in float64 on the same inputs."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from minipaged_kernels import reference

TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
HEADS = ((8, 8), (8, 1), (12, 4), (40, 40), (64, 8), (34, 2))
HEAD_DIMS = (32, 64, 80, 96, 112, 120, 128, 192, 256)
BLOCK_SIZES = (8, 16, 32)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# (new tokens, context) of each sequence.
MIXES = (
    ((1, 1328), (5, 18), (129, 463)),
    ((1, 523), (1, 37), (1, 2011)),
    ((1, 31), (1, 32), (1, 33), (32, 32), (2, 65)),
    ((1, 96), (97, 97), (3, 95)),
    tuple((1, 1 + 37 * i % 300) for i in range(64)),
    ((300, 300),),
)
SHORT_MIXES = (  # for the interpreter, which takes a millisecond for every program and tile
    ((1, 70), (5, 18)),
    ((1, 31), (1, 32), (1, 33)),
    ((17, 17), (2, 35)),
)


def load(name: str) -> SimpleNamespace:
    """The three functions of a backend; `device` is where its tensors lie."""
    if name == "triton":
        attention = importlib.import_module("minipaged_kernels.triton_attention")
        cache = importlib.import_module("minipaged_kernels.triton_cache")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        functions = (attention.paged_attention, cache.write_kv, cache.copy_blocks)
    else:
        module = importlib.import_module(f"minipaged_kernels.{name}")
        device, functions = "cpu", (module.paged_attention, module.write_kv, module.copy_blocks)
    names = ("paged_attention", "write_kv", "copy_blocks")
    return SimpleNamespace(name=name, device=device, **dict(zip(names, functions, strict=True)))


no_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
BACKENDS = [
    "reference",
    "cpu",
    # On a GPU where there is one (and then `-m gpu` picks it), else in the interpreter.
    pytest.param("triton", marks=[no_triton] + ([pytest.mark.gpu] if torch.cuda.is_available() else [])),
]


@dataclass
class Problem:
    """The arguments of one `paged_attention`, on the CPU."""

    query: torch.Tensor  # (num_tokens, num_q_heads, head_dim)
    kv_layer: torch.Tensor  # (num_blocks, 2, num_kv_heads, block_size, head_dim), a view of one layer of three
    block_tables: torch.Tensor  # (num_sequences, max_blocks)
    query_starts: torch.Tensor  # (num_sequences + 1)
    context_lens: torch.Tensor  # (num_sequences)
    scale: float

    def solve(self, backend: SimpleNamespace) -> torch.Tensor:
        """This problem's answer by a backend, on the CPU."""
        tensors = (self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens)
        return backend.paged_attention(*(t.to(backend.device) for t in tensors), self.scale).cpu()

    def error(self, answer: torch.Tensor) -> float:
        """Largest difference from the oracle; NaN anywhere is infinitely wrong."""
        expected = reference.paged_attention(
            self.query, self.kv_layer, self.block_tables, self.query_starts, self.context_lens, self.scale,
            compute_dtype=torch.float64,
        )  # fmt: skip
        difference = (answer.double() - expected).abs().max().item()
        return difference if difference == difference else float("inf")


def make(
    heads: tuple[int, int],
    head_dim: int,
    block_size: int,
    mix: tuple[tuple[int, int], ...],
    dtype: torch.dtype,
    *,
    poison: bool = True,
    seed: int = 0,
) -> Problem:
    """Sequences over a shuffled pool. With `poison`, every slot that belongs to none holds NaN, tails of blocks too."""
    generator = torch.Generator().manual_seed(seed)
    num_q_heads, num_kv_heads = heads
    blocks = [-(-context // block_size) for _, context in mix]
    num_blocks = sum(blocks) + 2
    shape = (num_blocks, 3, 2, num_kv_heads, block_size, head_dim)
    kv = torch.randn(shape, generator=generator).to(dtype)
    order = torch.randperm(num_blocks, generator=generator).to(torch.int32)
    tables = torch.full((len(mix), max(blocks) + 1), num_blocks - 1, dtype=torch.int32)
    mine = torch.zeros(num_blocks, block_size, dtype=torch.bool)
    taken = 0
    for i, (_, context) in enumerate(mix):
        tables[i, : blocks[i]] = order[taken : taken + blocks[i]]
        for j in range(blocks[i]):
            mine[order[taken + j], : context - j * block_size] = True
        taken += blocks[i]
    if poison:
        kv.permute(0, 4, 1, 2, 3, 5)[~mine] = float("nan")  # (num_blocks, block_size, …)
    new = torch.tensor([0] + [m for m, _ in mix])
    return Problem(
        query=torch.randn(int(new.sum()), num_q_heads, head_dim, generator=generator).to(dtype),
        kv_layer=kv[:, 1],
        block_tables=tables,
        query_starts=new.cumsum(0).to(torch.int32),
        context_lens=torch.tensor([c for _, c in mix], dtype=torch.int32),
        scale=head_dim**-0.5,
    )


def pairwise_cover(mixes: tuple) -> list[tuple]:
    """(heads, head_dim, block_size, mix, dtype): every pair of values of two of these occurs in at least one case."""
    return [
        (heads, head_dim, BLOCK_SIZES[(h + d) % 3], mixes[(h + d // 3 + 2 * d) % len(mixes)], DTYPES[(d // 3 + h) % 3])
        for h, heads in enumerate(HEADS)
        for d, head_dim in enumerate(HEAD_DIMS)
    ]
