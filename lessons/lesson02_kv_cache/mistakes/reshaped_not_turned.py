"""“The shapes differ, so I make them fit.”"""

import torch

from lessons.lesson02_kv_cache import solution
from lessons.lesson02_kv_cache.solution import *  # noqa: F403


class ContiguousCache(solution.ContiguousCache):
    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        new, kv_heads, head_dim = key.shape
        slots = slice(self.num_computed, self.num_computed + new)
        self.kv[layer, 0, :, slots] = key.reshape(kv_heads, new, head_dim)
        self.kv[layer, 1, :, slots] = value.reshape(kv_heads, new, head_dim)
