"""Tiny random GPTs for tests: a few thousand weights, made in milliseconds, the same ones every time."""

from __future__ import annotations

from typing import Any

import torch

from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT


def tiny_config(**changes: Any) -> ModelConfig:
    """2 layers, 4 heads of 6, vocabulary 50, 64 positions, unless told otherwise."""
    sizes: dict[str, Any] = {
        "vocab_size": 50, "max_positions": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 4, "head_dim": 6,
        "hidden_size": 24, "intermediate_size": 40,
    }  # fmt: skip
    return ModelConfig(**(sizes | changes))


def tiny_gpt(seed: int = 0, dtype: torch.dtype = torch.float32, **changes: Any) -> GPT:
    """A GPT of `tiny_config(**changes)` whose weights are wide enough that its logits differ clearly."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(tiny_config(**changes))
    for parameter in model.parameters():
        parameter.normal_(0.0, 0.3, generator=generator)
    return model.to(dtype).eval()
