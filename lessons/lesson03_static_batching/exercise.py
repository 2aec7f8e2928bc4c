"""Lesson 3: what a padded batch needs. Three tasks; `python -m lessons check 3` says how you stand.

The batch works like this. All prompts are made equally long and go through the model together, as a rectangle of
(batch, longest) tokens. The token in column c of a row has position c. Its K and V are written into column c of that
row's cache, and then it attends to its own row's columns, but for those that it must not see. After the prompts every
member computes one row a step, in the column behind its last one, until the slowest has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def pad(prompts: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """Task 1. Make prompts equally long, without moving a token from its position.

    Args:
        prompts: token ids, at least one each. They stay as they are.

    Returns:
        The token ids, each as long as the longest prompt, filled up with 0; and for each prompt the column of its last
        token, since the answer's first token is drawn from there.

    pad([[5, 6, 7], [8]]) -> ([[5, 6, 7], [8, 0, 0]], [2, 0])
    """
    raise NotImplementedError("lesson 3, task 1: make prompts equally long")


def hide(positions: torch.Tensor, columns: int) -> torch.Tensor:
    """Task 2. Say which columns each new token must not see.

    A token sees itself and what stands before it in its own text. What stands behind it is the future, padding, or
    what a longer neighbour has there.

    Args:
        positions: (batch, new) whole numbers: the column of each new token.
        columns: how many columns of the cache are looked at, from the first.

    Returns:
        (batch, new, columns) bool, True where the token must not look.

    Two members that each compute one token, in columns 2 and 0, of 4 columns:
    hide(tensor([[2], [0]]), 4) -> [[[F, F, F, T]], [[F, T, T, T]]]
    """
    raise NotImplementedError("lesson 3, task 2: say what a row must not see")


def wasted_rows(prompt_lengths: Sequence[int], answer_lengths: Sequence[int]) -> tuple[int, int]:
    """Task 3. How many rows a batch computes for nothing.

    A row is one token's way through the model. All members take part in every step until the longest answer is there.
    The step that computes the prompts draws the first token of every answer; each further step draws one more.

    Args:
        prompt_lengths: tokens of each prompt, at least 1.
        answer_lengths: tokens of each answer, at least 1, in the same order.

    Returns:
        Padded: rows that only make the prompts equally long. Idle: rows of members that have ended already.

    wasted_rows([3, 1], [4, 2]) -> (2, 2)
    Prompts: 2 rows of 3 tokens, 2 of these 6 are padding. Four steps; in the last two the second member has ended.
    """
    raise NotImplementedError("lesson 3, task 3: reckon the waste beforehand")
