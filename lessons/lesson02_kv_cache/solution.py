"""Lesson 2, one way to do it: a cache of keys and values for one sequence, in one piece of memory."""

from __future__ import annotations

import torch

from minipaged.config import ModelConfig


class ContiguousCache:
    """K and V of one sequence's tokens, in every layer. Token number i of the sequence has slot i.

    Args:
        config: gives layers, KV heads and head_dim.
        max_tokens: slots; all of them are taken now, used or not.
        dtype: of K and V; the model's.
        device: where they lie.
    """

    def __init__(
        self,
        config: ModelConfig,
        max_tokens: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        shape = (config.num_layers, 2, config.num_kv_heads, max_tokens, config.head_dim)
        self.kv = torch.empty(shape, dtype=dtype, device=device)
        self.num_computed = 0  # tokens before the pass that is running; whoever runs it moves it on

    def positions(self, num_new: int) -> torch.Tensor:
        """Behind those that are there: (new)."""
        return torch.arange(self.num_computed, self.num_computed + num_new, device=self.kv.device)

    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """K and V of the new tokens, (new, kv_heads, head_dim) each, into the next slots."""
        slots = slice(self.num_computed, self.num_computed + len(key))
        self.kv[layer, 0, :, slots] = key.transpose(0, 1)  # (kv_heads, new, head_dim)
        self.kv[layer, 1, :, slots] = value.transpose(0, 1)  # (kv_heads, new, head_dim)

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Each new row over the slots up to its own: (new, num_heads, head_dim)."""
        self.append(layer, key, value)  # first, for a token sees itself
        context = self.num_computed + len(query)  # this pass's tokens included
        # Cut, not masked: what lies behind was never written, and 0 * NaN is NaN.
        keys, values = self.kv[layer, :, :, :context]  # each (kv_heads, context, head_dim)

        group = query.shape[1] // keys.shape[0]  # neighbouring query heads that share a KV head
        keys = keys.repeat_interleave(group, dim=0)  # (num_heads, context, head_dim)
        values = values.repeat_interleave(group, dim=0)  # (num_heads, context, head_dim)
        scores = query.transpose(0, 1) @ keys.transpose(1, 2) * query.shape[-1] ** -0.5  # (num_heads, new, context)
        # Row j stands at position num_computed + j, key k at position k. A decode's one row is the last: no key is
        # behind it, and the mask is False throughout.
        positions = self.positions(len(query))  # (new)
        future = torch.arange(context, device=positions.device) > positions[:, None]  # (new, context)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)  # (num_heads, new, context)
        return (weights @ values).transpose(0, 1)  # (new, num_heads, head_dim)


def kv_bytes_per_token(config: ModelConfig, itemsize: int) -> int:
    """A key and a value, for each KV head of each layer."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * itemsize
