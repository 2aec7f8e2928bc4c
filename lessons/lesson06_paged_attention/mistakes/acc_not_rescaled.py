"""“The sum is measured anew when the maximum rises; acc only collects.”"""

from __future__ import annotations

import torch

from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.solution import *  # noqa: F403


def update(running: Running, scores: torch.Tensor, values: torch.Tensor) -> Running:
    maximum = torch.maximum(running.maximum, scores.amax(dim=-1))
    base = maximum.masked_fill(maximum == float("-inf"), 0.0)
    weights = torch.exp(scores - base[..., None])
    total = running.total * torch.exp(running.maximum - base) + weights.sum(dim=-1)
    return Running(maximum, total, running.acc + weights @ values)
