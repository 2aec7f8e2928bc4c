"""StaticBatches: a scheduler under which nobody comes in until the last of the batch has ended. The naive way.

The batch is all that fit when nobody runs any more, and its prompts are computed together, however long they are. It is
a fair baseline: who has ended computes no more rows, and nothing is padded. What is left of the waste is the waiting.
"""

from __future__ import annotations

from typing import Any

from minipaged.plan import StepPlan
from minipaged.scheduler import Memory, Scheduler


class StaticBatches(Scheduler):
    """Static batches: the next sequences are admitted when all of the last batch have ended.

    Its budget is at least as large as the memory, so it is places and memory that bound a batch.

    Args:
        memory: who gives and takes the token slots.
        max_batch_tokens: tokens in a step at most; raised to the memory's slots.
        **options: as `Scheduler` has them.
    """

    def __init__(self, memory: Memory, *, max_batch_tokens: int = 2048, **options: Any) -> None:
        super().__init__(memory, max_batch_tokens=max(max_batch_tokens, memory.total_slots), **options)

    def schedule(self) -> StepPlan:
        """As `Scheduler.schedule`, but the door opens only when all places are empty."""
        chunks = self._open_step()
        if self._running:
            self._go_on(chunks, self.max_batch_tokens)
            self._waiting_cause = "the batch is not over" if self._waiting else None
        else:
            self._admit(chunks, self.max_batch_tokens, enough=True)
        return self._finished_plan(chunks)
