"""AllRows, the naive way: for each token of the answer, all tokens through the model, and logits of all their rows.

It is what `model(tokens).logits[-1]` does in many a first program. Right, simple, and fit for `generate`; what it does
is counted where it is caused. Knows no loop and no text. `minipaged/model/plain_loop.py`, the oracle of the
engine's tests, recomputes as well, but makes logits of one row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson01_token_loop.work import Work
from minipaged.model.gpt import GPT, full_attention


class AllRows:
    """`next_logits` with a row for every token.

    Args:
        model: the network.
    """

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.work = Work()

    def __call__(self, token_ids: Sequence[int]) -> torch.Tensor:
        """All tokens so far -> (tokens, vocab)."""
        ids = torch.tensor(token_ids, device=self.model.device)  # (tokens)
        positions = torch.arange(len(token_ids), device=self.model.device)  # (tokens)
        with torch.inference_mode():
            hidden = self.model(ids, positions, full_attention)  # (tokens, hidden)
            logits = self.model.logits(hidden)  # (tokens, vocab)
        self.work.add(self.model, len(token_ids), len(token_ids), logit_rows=len(token_ids))
        return logits
