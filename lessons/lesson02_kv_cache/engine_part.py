"""The engine's reference kernels under the exercise's names: a contiguous cache is a paged one with a single block."""

from __future__ import annotations

import torch
from minipaged_kernels import reference

from lessons.lesson02_kv_cache import solution
from minipaged.config import ModelConfig

__all__ = ["ContiguousCache", "kv_bytes_per_token"]


class ContiguousCache(solution.ContiguousCache):
    """One block of `max_tokens` slots, so that a slot of the pool is a position of the sequence."""

    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        reference.write_kv(key, value, self.kv[layer][None], self.positions(len(key)))

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        self.append(layer, key, value)
        tables = torch.zeros(1, 1, dtype=torch.int32)  # the sequence's first block is block 0
        starts = torch.tensor([0, len(query)], dtype=torch.int32)
        contexts = torch.tensor([self.num_computed + len(query)], dtype=torch.int32)
        scale = query.shape[-1] ** -0.5
        return reference.paged_attention(query, self.kv[layer][None], tables, starts, contexts, scale)


def kv_bytes_per_token(config: ModelConfig, itemsize: int) -> int:
    return config.kv_bytes_per_token(itemsize)
