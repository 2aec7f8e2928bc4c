"""Lesson 2: a cache of keys and values for one sequence, in one piece of memory."""

from __future__ import annotations

import torch

from minipaged.config import ModelConfig


class ContiguousCache:
    """K and V of one sequence's tokens, in every layer. Token number i of the sequence has slot i.

    A pass over some new tokens goes like this: `positions` says where they stand; the model calls `attend` once for
    each layer; then whoever ran the pass adds their number to `num_computed`. So during a pass, in all layers alike,
    `num_computed` is the number of tokens that were there *before* it.

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
        # Index 0 of the second dimension is K, index 1 is V. What lies in a slot before it is written is anything.
        shape = (config.num_layers, 2, config.num_kv_heads, max_tokens, config.head_dim)
        self.kv = torch.empty(shape, dtype=dtype, device=device)
        self.num_computed = 0

    def positions(self, num_new: int) -> torch.Tensor:
        """Where the next `num_new` tokens stand in the sequence, as a tensor of integers on the cache's device.

        The model needs it, for it adds a vector to each token that says at which position it stands.

        Example: with 3 tokens in the cache, positions(2)  ->  tensor([3, 4])
        """
        raise NotImplementedError("lesson 2, task 1: the positions of the next tokens, behind those that are there")

    def append(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """Write the new tokens' K and V of one layer into their slots, and nothing else.

        `num_computed` stays: the other layers have yet to write the same tokens.

        Args:
            layer: from 0.
            key, value: (new, num_kv_heads, head_dim), as the model makes them: token by token. The cache keeps head
                by head; `transpose` turns the one into the other.

        Example: with 3 tokens in the cache, two new ones go to self.kv[layer, :, :, 3] and self.kv[layer, :, :, 4].
        """
        raise NotImplementedError("lesson 2, task 1: write K and V of the new tokens into their slots")

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Attention of the new tokens over all tokens so far, themselves included. This is what the model calls.

        Append first. Then each new row meets the keys of its own token and of all before it, and of none behind it:

            scores  = query · key / sqrt(head_dim)
            weights = softmax of a row's scores
            out     = the values, each times its weight, summed

        Query heads may be more than KV heads, by a whole factor: then neighbours share one. With 4 query heads and 2
        KV heads, query heads 0 and 1 read KV head 0, query heads 2 and 3 read KV head 1.

        Args:
            layer: from 0.
            query: (new, num_heads, head_dim).
            key, value: (new, num_kv_heads, head_dim).

        Returns:
            (new, num_heads, head_dim).

        Example: all keys are 0, so all that a row sees has equal weight. Two tokens with the values 1 and 3 are in the
        cache, two with 5 and 7 come: the first row sees 1, 3, 5, its result is 3; the second sees 1, 3, 5, 7: 4.
        """
        raise NotImplementedError("lesson 2, task 2: append, then attend over the slots up to each row's own")


def kv_bytes_per_token(config: ModelConfig, itemsize: int) -> int:
    """Bytes that one token takes in such a cache.

    Args:
        config: the model's shape.
        itemsize: bytes of a number: 4 in float32, 2 in float16.

    Example: 4 layers, 4 heads and 2 KV heads of head_dim 32, float32: a key and a value are 2·32 numbers, and there
    are 2 of them in each of 4 layers: kv_bytes_per_token(config, 4)  ->  2048
    """
    raise NotImplementedError("lesson 2, task 3: bytes of K and V of one token, all layers")
