"""Lesson 1, one way to do it: the loop, and what one of its steps costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from lessons.lesson01_token_loop.shape import head_weights, layer_weights
from minipaged.config import ModelConfig

#: All tokens so far -> (rows, vocab) logits; the last row is the last token's.
NextLogits = Callable[[Sequence[int]], torch.Tensor]


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    """Continue a prompt greedily, until `eos`, which is kept, or `max_tokens`."""
    answer: list[int] = []
    while len(answer) < max_tokens:
        logits = next_logits([*prompt, *answer])  # (rows, vocab)
        # Every row scores the token after its own; what comes after those in the middle is known already.
        token_id = int(logits[-1].argmax())
        answer.append(token_id)
        # Only now, so that the token is kept; and before the next pass, so that none is run for nothing.
        if token_id == eos:
            break
    return answer


def step_flops(config: ModelConfig, new_tokens: int, context: int, logit_rows: int = 1) -> int:
    """FLOPs of the matrix products of one step."""
    # One weight and one row: a multiplication, and an addition to the sum.
    layers = 2 * new_tokens * config.num_layers * layer_weights(config)
    head = 2 * logit_rows * head_weights(config)
    # A row and a key: head_dim products for the score, and as many for the value's part in the sum.
    pairs = config.num_layers * config.num_heads * new_tokens * context
    attention = 2 * 2 * pairs * config.head_dim
    return layers + attention + head


def step_bytes(config: ModelConfig, new_tokens: int, context: int, itemsize: int) -> int:
    """Bytes that one step must move at the least."""
    weights = config.num_layers * layer_weights(config) + head_weights(config)  # once: no factor of new_tokens
    kv_per_token = 2 * config.num_layers * config.num_kv_heads * config.head_dim
    return itemsize * (weights + kv_per_token * (new_tokens + context))  # written, and read
