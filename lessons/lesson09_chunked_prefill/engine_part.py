"""The engine's own sharing under the exercise's names, so that the same check can be put to it.

It shares within one loop, and says whether to draw where it makes a chunk. The two small functions are asked of it by
looking at what it plans.
"""

from __future__ import annotations

from lessons.lesson08_continuous_batching.hall import Hall
from lessons.lesson09_chunked_prefill.given import GivenBudget
from minipaged import scheduler

__all__ = ["Scheduler"]


class Scheduler(GivenBudget):
    """The engine's scheduler; lesson 8's frame is not used."""

    schedule = scheduler.Scheduler.schedule
    commit = scheduler.Scheduler.commit
    _leave = scheduler.Scheduler._leave
    _chunk = scheduler.Scheduler._chunk

    def share(self, uncomputed: int, budget: int, behind: int) -> int:
        """One prompt runs, with its first token computed, and so many sequences behind it write."""
        hall = Hall(scheduler.Scheduler, "all", places=budget, blocks=4096, budget=budget, chunk=self.max_chunk_tokens)
        first = hall.come(prompt=1)
        for _ in range(behind):
            hall.come(prompt=1)
        hall.step()
        first.tokens.extend([1] * (uncomputed - 1))  # as if its answer had been longer than it is
        return hall.schedule()[0][1]

    def reaches_end(self, start: int, num_tokens: int, total: int) -> bool:
        """Whether the engine draws behind such a chunk."""
        hall = Hall(scheduler.Scheduler, "all", places=1, blocks=4096)
        one = hall.come(prompt=total)
        one.num_computed = start
        return bool(hall.scheduler._chunk(one, num_tokens).draws)
