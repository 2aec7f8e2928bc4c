"""CachedPass: lesson 1's `next_logits`, with a memory. Only tokens that are new to it go through the model.

The loop that calls it need not know: it hands over all tokens so far, as before. The cache itself is in `solution.py`,
since it is what the learner writes; theirs, with `--mine`, takes its place. Knows one sequence and no batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lessons.lesson01_token_loop.work import Work
from lessons.lesson02_kv_cache.solution import ContiguousCache
from minipaged.model.gpt import GPT

__all__ = ["CachedPass", "ContiguousCache"]


class CachedPass:
    """`next_logits` on a cache.

    Args:
        model: the network.
        cache: empty, and of the model's dtype and device; it is this sequence's alone.
    """

    def __init__(self, model: GPT, cache: ContiguousCache) -> None:
        self.model = model
        self.cache = cache
        self.work = Work()

    def __call__(self, token_ids: Sequence[int]) -> torch.Tensor:
        """All tokens so far -> (1, vocab).

        Raises:
            ValueError: none of them is new, or they are more than the cache has slots.
        """
        max_tokens = self.cache.kv.shape[3]
        if not self.cache.num_computed < len(token_ids) <= max_tokens:
            raise ValueError(
                f"CachedPass: {len(token_ids)} tokens, of which {self.cache.num_computed} are in the cache; at least "
                f"one must be new, and all must fit into {max_tokens} slots"
            )
        new = torch.tensor(token_ids[self.cache.num_computed :], device=self.model.device)  # (new)
        with torch.inference_mode():
            hidden = self.model(new, self.cache.positions(len(new)), self.cache.attend)  # (new, hidden)
            logits = self.model.logits(hidden[-1:])  # (1, vocab)
        self.cache.num_computed += len(new)  # now all layers have written them
        self.work.add(self.model, len(new), len(token_ids), logit_rows=1)
        return logits
