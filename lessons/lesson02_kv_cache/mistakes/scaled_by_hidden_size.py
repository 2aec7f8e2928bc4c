"""“Scores are divided by the root of the width.”"""

import torch

from lessons.lesson02_kv_cache import solution
from lessons.lesson02_kv_cache.solution import *  # noqa: F403


class ContiguousCache(solution.ContiguousCache):
    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        self.append(layer, key, value)
        context = self.num_computed + len(query)
        keys, values = self.kv[layer, :, :, :context]
        group = query.shape[1] // keys.shape[0]
        keys, values = (x.repeat_interleave(group, dim=0) for x in (keys, values))
        hidden_size = query.shape[1] * query.shape[2]
        scores = query.transpose(0, 1) @ keys.transpose(1, 2) * hidden_size**-0.5
        future = torch.arange(context) > self.positions(len(query))[:, None]
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return (weights @ values).transpose(0, 1)
