"""LastRow, the real way: one forward pass, and logits of its last row alone.

The row is picked before the head and not behind it: the head is the widest matrix of a small model. The tokens before
the last still go through the layers again each time; what for, and how not to, is lesson 2's business.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson01_token_loop.work import Work
from minipaged.model.gpt import GPT, full_attention


class LastRow:
    """`next_logits` with the last token's row.

    Args:
        model: the network.
    """

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.work = Work()

    def __call__(self, token_ids: Sequence[int]) -> torch.Tensor:
        """All tokens so far -> (1, vocab)."""
        ids = torch.tensor(token_ids, device=self.model.device)  # (tokens)
        positions = torch.arange(len(token_ids), device=self.model.device)  # (tokens)
        with torch.inference_mode():
            hidden = self.model(ids, positions, full_attention)  # (tokens, hidden)
            logits = self.model.logits(hidden[-1:])  # (1, vocab)
        self.work.add(self.model, len(token_ids), len(token_ids), logit_rows=1)
        return logits
