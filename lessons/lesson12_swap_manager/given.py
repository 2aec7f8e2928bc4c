"""What lesson 12's exercise is given: the host pool's books and the mover of contents, without the methods that are the
point.

Both are the engine's own classes, so that what is written below them can take their place in the engine.
"""

from __future__ import annotations

from minipaged.memory import swap, tiers
from minipaged.memory.prefix_tree import Node
from minipaged.plan import SwapIn, SwapOut

__all__ = ["GivenSwap", "GivenTiers", "Node", "SwapIn", "SwapOut"]


class GivenSwap(swap.SwapManager):
    """The books of the host pool, without their rules.

    Attributes:
        num_blocks: blocks in the host pool.
        free: the host blocks that hold nothing.
        order: the host blocks that hold a copy, the least recently used first.
        clean: of them, those whose content is on the device, too. The others are sole: nobody else has it.
        reading: of them, those that are about to be read. They must stay until that is done.
    """

    def __init__(self, num_blocks: int) -> None:
        super().__init__(num_blocks)
        self.free: list[int] = self._free
        self.order: list[int] = []
        self.clean: set[int] = set()
        self.reading: set[int] = set()

    def use(self, block: int, clean: bool) -> None:
        """See the exercise."""
        raise NotImplementedError

    # As the engine asks ----------------------------------------------------------------------------------------------

    @property
    def drop_order(self) -> tuple[int, ...]:
        """The copies in the order in which they should go: clean ones first."""
        return (*(b for b in self.order if b in self.clean), *(b for b in self.order if b not in self.clean))

    def is_clean(self, block: int) -> bool:
        return block in self.clean

    def pin(self, block: int) -> None:
        """It is about to be read."""
        self.reading.add(block)

    def mark_clean(self, block: int) -> None:
        """It was read, or written: its content is on the device, too."""
        self.reading.discard(block)
        self.use(block, clean=True)

    def mark_sole(self, block: int) -> None:
        """It was read, or its content has left the device."""
        self.reading.discard(block)
        self.use(block, clean=False)

    def check(self) -> None:
        """Every host block is free or holds a copy, and nothing is being read between calls."""
        assert sorted([*self.free, *self.order]) == list(range(self.num_blocks)), "a host block is lost, or there twice"
        assert self.clean <= set(self.order), "a block is clean and holds nothing"
        assert not self.reading, "a block is still being read"


class GivenTiers(tiers.Tiers):
    """What moves contents between the two pools, but for the two moves.

    Attributes:
        swap: the host pool's books, yours or the engine's; None when there is no host pool. Only yours have `use`: say
            `mark_clean` or `mark_sole`.
        operations: the log: what is to be copied before the next forward pass, in this order.
    """

    def evict(self, node: Node, block: int) -> None:
        """See the exercise."""
        raise NotImplementedError

    def bring_back(self, node: Node) -> int:
        """See the exercise."""
        raise NotImplementedError

    def take_host_block(self) -> int | None:
        """A host block to write to, if need be the victim's; None when there is none to be had."""
        return self._take_host_block()

    def drop(self, node: Node) -> None:
        """The node's content is lost, and whatever continues it: to be computed again when somebody needs it."""
        self.counts.drops += 1
        self.forget(node)

    # `take()`, a device block for you, and `place(node, block)`, the node's content is in that device block now, are
    # the engine's own. `place` marks a host copy clean.

    # As the engine asks ----------------------------------------------------------------------------------------------

    def _evicted(self, node: Node, block: int) -> None:
        node.device = None
        self._touch(node)
        self.counts.evictions += 1
        logged = len(self.operations)
        self.evict(node, block)
        self.counts.swaps_out += sum(isinstance(operation, SwapOut) for operation in self.operations[logged:])
        if node.host is not None:
            self._on_host[node.host] = node

    def _swap_in(self, node: Node) -> int:
        self.counts.swaps_in += 1
        return self.bring_back(node)
