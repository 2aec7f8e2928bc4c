"""“A pass has as many positions as tokens.”"""

import torch

from lessons.lesson02_kv_cache import solution
from lessons.lesson02_kv_cache.solution import *  # noqa: F403


class ContiguousCache(solution.ContiguousCache):
    def positions(self, num_new: int) -> torch.Tensor:
        return torch.arange(num_new)
