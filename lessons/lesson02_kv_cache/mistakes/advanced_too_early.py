"""“What is written counts as computed.”"""

import torch

from lessons.lesson02_kv_cache import solution
from lessons.lesson02_kv_cache.solution import *  # noqa: F403


class ContiguousCache(solution.ContiguousCache):
    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        super().append(layer, key, value)
        self.num_computed += len(key)
