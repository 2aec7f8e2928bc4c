"""Work: what forward passes have cost. Whoever makes them counts them; this knows the sums."""

from __future__ import annotations

from dataclasses import dataclass

from lessons.lesson01_token_loop.solution import step_flops
from minipaged.model.gpt import GPT


@dataclass(slots=True)
class Work:
    """What some forward passes have cost.

    Args:
        passes: forward passes.
        rows: tokens through the layers, all passes together.
        logit_rows: rows of which logits were made.
        flops: of the matrix products.
    """

    passes: int = 0
    rows: int = 0
    logit_rows: int = 0
    flops: int = 0

    def add(self, model: GPT, new_tokens: int, context: int, logit_rows: int) -> None:
        """One pass more."""
        self.passes += 1
        self.rows += new_tokens
        self.logit_rows += logit_rows
        self.flops += step_flops(model.config, new_tokens, context, logit_rows)
