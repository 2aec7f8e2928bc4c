"""Lesson 1: the loop that writes an answer, and what one of its steps costs.

A *row* is one token on its way through the model: a vector of `hidden_size` numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from lessons.lesson01_token_loop.shape import head_weights, layer_weights  # noqa: F401 (given; you will want them)
from minipaged.config import ModelConfig

#: All tokens so far -> (rows, vocab) logits. It may make a row for every token, or for the last token alone; either
#: way the last row is the last token's, and scores what may come after it.
NextLogits = Callable[[Sequence[int]], torch.Tensor]


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    """Continue a prompt, token by token. Each token is the one with the highest logit: that is *greedy* choice.

    The answer ends with the token `eos` ("end of sequence"), which belongs to it, or after `max_tokens` tokens.
    The model keeps nothing from one call to the next: it knows what it is given. A call is expensive, so there is
    none whose logits nobody looks at.

    Args:
        next_logits: one forward pass over all tokens so far.
        prompt: token ids, at least one; not to be changed.
        max_tokens: tokens of the answer at most, at least 1; the prompt is not counted.
        eos: the token that ends an answer, if the model draws it; None when there is none.

    Returns:
        The answer's token ids, as a list of ints, without the prompt.

    Example, with a model that counts (the highest logit after token t is that of t + 1):

        generate(counts, [7, 3], max_tokens=2, eos=None)  ->  [4, 5]
        generate(counts, [7, 3], max_tokens=9, eos=5)     ->  [4, 5]
    """
    raise NotImplementedError("lesson 1, task 1: draw token after token, until eos or max_tokens")


def step_flops(config: ModelConfig, new_tokens: int, context: int, logit_rows: int = 1) -> int:
    """Floating-point operations (FLOPs) of the matrix products of one step, for one sequence.

    A multiplication is one operation and an addition is one. Count three things:

    - the layers' matrices, which every new row is multiplied with;
    - attention: in every layer and every *query* head, every new row meets all `context` keys twice: once for its
      scores (query · key, `head_dim` long), once for the weighted sum of the values. Count also those scores that the
      causal mask hides afterwards: the plain way computes them;
    - the head, for `logit_rows` rows.

    Args:
        config: the model's shape.
        new_tokens: rows that go through the layers in this step: the whole prompt in a prefill, 1 in a decode.
        context: tokens that there are after this step, the new ones included.
        logit_rows: rows whose logits are made.

    Example: 1 layer, 2 heads and 2 KV heads of head_dim 2, hidden_size 4, intermediate_size 8, vocab_size 10. A layer
    has 128 weights, the head 40. One row alone: 2·128 in the layer, 4·2·2 in attention, 2·40 in the head:

        step_flops(config, new_tokens=1, context=1)  ->  352
        step_flops(config, new_tokens=1, context=5)  ->  416
    """
    raise NotImplementedError("lesson 1, task 2: layers, attention and head of one step, in FLOPs")


def step_bytes(config: ModelConfig, new_tokens: int, context: int, itemsize: int) -> int:
    """Bytes that one step must move between memory and processor at the least, for one sequence.

    Count two things:

    - the weights of the layers and of the head: each is read once in a step, however many rows it meets;
    - K and V: the key and the value of every KV head in every layer. Those of the new tokens are written, those of
      the whole context are read.

    The rows themselves are left out: they are small and stay near the processor.

    Args:
        config: the model's shape.
        new_tokens: rows that go through the layers in this step.
        context: tokens that there are after this step, the new ones included.
        itemsize: bytes of a number: 4 in float32, 2 in float16 or bfloat16.

    Example, with the shape from above: 128 + 40 weights, and 2·1·2·2 = 8 numbers of K and V a token:

        step_bytes(config, new_tokens=1, context=1, itemsize=4)  ->  672 + 32 + 32 = 736
        step_bytes(config, new_tokens=1, context=5, itemsize=4)  ->  672 + 32 + 160 = 864
    """
    raise NotImplementedError("lesson 1, task 3: weights, and K and V, of one step, in bytes")
