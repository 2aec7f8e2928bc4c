"""ReservingCache: a region for all that a request may ever need, taken when it starts and kept until it ends.

This is how inference was done before paging: a tensor of a fixed shape per request. It never moves and never preempts,
and it pays for every token that might come. How long the answer will really be, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from minipaged.memory.contiguous.contiguous_cache import ContiguousCache
from minipaged.memory.contiguous.regions import Regions
from minipaged.memory.contiguous.space import Space
from minipaged.request import Sequence

Wants = Callable[[Sequence], int]  # how many slots a sequence is to have


def prompt_and_maximum(sequence: Sequence) -> int:
    """The prompt, and `max_tokens` less one: the last token drawn is never fed back, so it needs no slot."""
    return sequence.num_prompt_tokens + sequence.request.params.max_tokens - 1


def whole_context(context: int) -> Wants:
    """As many as the model has positions, whatever the request. One that asks for more is the scheduler's to refuse."""
    return lambda sequence: max(context, prompt_and_maximum(sequence))


def as_recorded(final_slots: Mapping[int, int]) -> Wants:
    """Just what the request will have used in the end, by its id: only an oracle knows that."""
    return lambda sequence: final_slots[sequence.request.id]


class ReservingCache(ContiguousCache):
    """Reserves what `wants` says, at most what the pool can give.

    Args:
        num_slots: token slots in the pool.
        wants: how many slots a sequence is to have, at least as many as it will use.
        space: makes the space that gives out regions, of a number of slots.
        poison_freed: see `ContiguousCache`.
    """

    def __init__(
        self,
        num_slots: int,
        wants: Wants = prompt_and_maximum,
        *,
        space: Callable[[int], Space] = Regions,
        poison_freed: bool = False,
    ) -> None:
        super().__init__(space(num_slots), poison_freed=poison_freed)
        self.wants = wants

    def slots_for(self, sequence: Sequence, end: int) -> int:
        """All that it may ever need, however few tokens it has now."""
        return min(self.wants(sequence), self.space.largest_region)

    def grow(self, sequence: Sequence, n: int) -> bool:
        """There is room, since it was reserved. False only for a fork that found no hole."""
        holding = self._require("grow", sequence)
        if not holding.table:
            return False
        end = sequence.num_computed + n
        assert end <= len(holding.table), f"sequence {sequence.id}: token {end} in a region of {len(holding.table)}"
        self._live_slots += end - holding.end
        holding.end = end
        return True
