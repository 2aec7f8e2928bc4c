"""BuddyCache: reserves as `ReservingCache` does, in regions that are powers of two.

Powers of two are quick to find and to merge, and holes stay usable, since few lengths exist. The price is what is
rounded up: a request for 531 slots gets 1024.
"""

from __future__ import annotations

from collections.abc import Callable

from minipaged.memory.contiguous.buddy import Buddy
from minipaged.memory.contiguous.reserving_cache import ReservingCache, Wants, prompt_and_maximum
from minipaged.memory.contiguous.space import Space


class BuddyCache(ReservingCache):
    """See `ReservingCache`.

    Args:
        num_slots: token slots in the pool; its largest region is the largest power of two in it.
        wants: how many slots a sequence is to have; what it gets is rounded up.
        space: the buddy allocator: ours, or the learner's.
        poison_freed: see `ContiguousCache`.
    """

    def __init__(
        self,
        num_slots: int,
        wants: Wants = prompt_and_maximum,
        *,
        space: Callable[[int], Space] = Buddy,
        poison_freed: bool = False,
    ) -> None:
        super().__init__(num_slots, wants, space=space, poison_freed=poison_freed)
