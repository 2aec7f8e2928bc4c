"""PrefillFirst: a scheduler that computes prompts before it lets anybody decode.

Each step is either prompts or decodes. A prompt starts as soon as there is room for it, so its first token comes early;
whoever is decoding pays for it with a gap as long as the prompt.
"""

from __future__ import annotations

from minipaged.plan import StepPlan
from minipaged.scheduler import Scheduler


class PrefillFirst(Scheduler):
    """Prompts before decodes: whoever decodes waits while a prompt can be computed. Made as `Scheduler` is."""

    def schedule(self) -> StepPlan:
        """As `Scheduler.schedule`, but decodes are computed only in a step in which no prompt can be."""
        chunks = self._open_step()
        budget, enough = self._go_on(chunks, self.max_batch_tokens, prompts_only=True)
        self._admit(chunks, budget, enough)
        if not chunks:
            self._go_on(chunks, budget)
        return self._finished_plan(chunks)
