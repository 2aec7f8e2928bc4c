"""“The new keys go into the cache.”"""

import torch

from lessons.lesson02_kv_cache import solution
from lessons.lesson02_kv_cache.solution import *  # noqa: F403


class ContiguousCache(solution.ContiguousCache):
    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        self.kv[layer, 0, :, : len(key)] = key.transpose(0, 1)
        self.kv[layer, 1, :, : len(key)] = value.transpose(0, 1)
