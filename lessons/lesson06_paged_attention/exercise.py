"""Lesson 6, exercise: attention that reads each block where it lies, once, and copies nothing together.

Shapes, as everywhere in minipaged:

    kv_layer   (num_blocks, 2, num_kv_heads, block_size, head_dim)     K at index 0, V at index 1
    query head h reads KV head h // (num_q_heads // num_kv_heads)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention.running import Running


def update(running: Running, scores: torch.Tensor, values: torch.Tensor) -> Running:
    """Take one block's keys into a softmax that has seen the keys before them.

    With m, l, acc as they were, and m' the largest score of old and new keys together:

        m' = max(m, max(scores))
        l' = l * exp(m - m') + sum of exp(scores - m')
        acc' = acc * exp(m - m') + sum of exp(scores - m') * values

    Two keys with the scores 0 and log 2 and the values 8 and 2, and then two with log 4 and 0, and 4 and 8:

        after the first block      m = log 2     l = 1/2 + 1 = 1.5           acc = 8/2 + 2 = 6
        exp(m - m') = 1/2
        after the second           m = log 4     l = 1.5/2 + 1 + 1/4 = 2     acc = 6/2 + 4 + 8/4 = 9

    and acc / l = 4.5, as (1*8 + 2*2 + 4*4 + 1*8) / (1 + 2 + 4 + 1) is.

    A score of -inf is a key that this row must not see. A row that sees nothing of a block keeps its m, l and acc; that
    may happen in the very first block, too.

    Args:
        running: what is known of the keys before: maximum and total (heads, rows), acc (heads, rows, head_dim). It is
            not changed.
        scores: (heads, rows, keys), already scaled.
        values: (heads, keys, head_dim).

    Returns:
        What is known with these keys, in the same shapes.
    """
    raise NotImplementedError("lesson 6, task 1: take one block's scores and values into the running softmax")


def attend(
    query: torch.Tensor, kv_layer: torch.Tensor, table: Sequence[int], context: int, scale: float
) -> torch.Tensor:
    """Attention of one new token over its context, block by block, with `update`.

    With block_size 4, a context of 6 and the table [7, 2, 5]: keys 0 to 3 lie in block 7, keys 4 and 5 in the first two
    slots of block 2. The other two slots of block 2 hold whatever was left there, and block 5 is not needed yet.

    What lies in slots beyond the context may be anything, also NaN (debug mode fills freed blocks with it). NaN * 0 is
    NaN, so such a slot must not be multiplied by a weight of 0; it must not be multiplied.

    Args:
        query: (num_q_heads, head_dim), float32.
        kv_layer: one layer's pool, see above; float32.
        table: physical block of each logical block, in order; it may be longer than the context needs.
        context: number of keys, the new token's own included; at least 1.
        scale: factor on the scores.

    Returns:
        (num_q_heads, head_dim).
    """
    raise NotImplementedError("lesson 6, task 2: attend to one block after the other, in the table's order")


def paged_attention(
    query: torch.Tensor,
    kv_layer: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention for a step: several sequences, each with one new token or many. The kernels' own signature.

    A sequence with n new tokens and a context of c, these included, computes n rows, and row j (from 0) sees the keys
    0 … c - n + j: its own and all before. With c = 5 and n = 2, row 0 sees keys 0 to 3 and row 1 keys 0 to 4.

    Each block is to be read once for all rows of its sequence, not once for each.

    Args:
        query: (num_tokens, num_q_heads, head_dim); sequence i owns rows `query_starts[i]:query_starts[i + 1]`.
        kv_layer: one layer's pool.
        block_tables: (num_sequences, max_blocks) integers; entries past a context mean nothing.
        query_starts: (num_sequences + 1) integers, from 0 to num_tokens.
        context_lens: (num_sequences) integers.
        scale: factor on the scores.

    Returns:
        (num_tokens, num_q_heads, head_dim).
    """
    raise NotImplementedError("lesson 6, task 3: attend for each sequence's new tokens, each row up to its own key")
