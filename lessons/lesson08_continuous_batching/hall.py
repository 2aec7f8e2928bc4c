"""A scheduler with a memory and nobody else: requests come, steps are planned and booked, no model is asked.

For the checks of lessons 8 and 9. What is not being checked is the engine's own, so that one task can be right while
another is not written yet.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from minipaged import scheduler
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.plan import Draw, Sampling, StepPlan, StepResult
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams
from minipaged.viz.theme import name

BLOCK_SIZE = 4
_ENGINES = {
    "fill": ("commit", "_leave"),
    "book": ("schedule", "_leave"),
    "leave": ("schedule", "commit"),
    "all": (),
}


class Hall:
    """Where requests come, and are served.

    Args:
        made_of: a class of schedulers.
        checked: of its decisions, the one that is used ("fill", "book", "leave"), or "all"; the others are the
            engine's.
        places: sequences that run at the same time at most.
        blocks: of four slots each.
        budget: tokens in a step at most.
        chunk: tokens of one sequence in a step at most.
    """

    def __init__(
        self,
        made_of: type[scheduler.Scheduler],
        checked: str,
        *,
        places: int,
        blocks: int = 64,
        budget: int = 64,
        chunk: int | None = None,
    ) -> None:
        engines = {method: getattr(scheduler.Scheduler, method) for method in _ENGINES[checked]}
        made: Any = type(made_of.__name__, (made_of,), engines)
        self.memory = KVManager(BlockPool(blocks), PrefixTree(BLOCK_SIZE), share_prefixes=False)
        self.scheduler: scheduler.Scheduler = made(
            self.memory, max_batch_tokens=budget, max_sequences=places, max_chunk_tokens=chunk
        )
        self.sequences: list[Sequence] = []
        self.plan: StepPlan | None = None

    def come(self, prompt: int, max_tokens: int = 9, stop: int | None = None) -> Sequence:
        """A request with a prompt of so many tokens; the first one is known as A, the next as B."""
        number = len(self.sequences)
        tokens = [5 + (number + i) % 90 for i in range(prompt)]
        stops = frozenset() if stop is None else frozenset({stop})
        request = Request(number, tuple(tokens), SamplingParams(max_tokens=max_tokens), number, stops)
        sequence = Sequence(number, request, 0, tokens, Sampling(1.0, None, 1.0, 0, number, 0))
        request.sequences.append(sequence)
        self.scheduler.add(request)
        self.sequences.append(sequence)
        return sequence

    def schedule(self) -> list[tuple[str, int]]:
        """Plan a step: who is in it, and with how many tokens."""
        self.plan = self.scheduler.schedule()
        return [(name(chunk.sequence), len(chunk.token_ids)) for chunk in self.plan.chunks]

    def commit(self, draw: Callable[[int], int] | int = 99) -> None:
        """Book the planned step: one token, or what a function of a sequence's id says, is drawn for each."""
        assert self.plan is not None
        drawn = [
            tuple(Draw(draw if isinstance(draw, int) else draw(chunk.sequence), 0.0) for _ in range(chunk.draws))
            for chunk in self.plan.chunks
        ]
        self.scheduler.commit(self.plan, StepResult(drawn))

    def step(self, draw: Callable[[int], int] | int = 99) -> list[tuple[str, int]]:
        """Plan and book."""
        planned = self.schedule()
        self.commit(draw)
        return planned

    @property
    def running(self) -> list[str]:
        return [name(sequence.id) for sequence in self.scheduler.running]

    @property
    def waiting(self) -> list[str]:
        return [name(sequence.id) for sequence in self.scheduler.waiting]


def is_reversed(names: list[str]) -> bool:
    """Each stands in front of an older one."""
    return len(names) > 1 and all(a > b for a, b in pairwise(names))
