"""ContiguousCache: memory for the scheduler in which every sequence has one contiguous region of token slots.

A run of slots is a block table whose blocks are one slot long: `table` is `(base, base + 1, …)`. So these caches stand
behind the engine's `Memory` protocol and run under its scheduler and its runner, with a KV cache of `block_size=1`.

Knows who holds which region and how many of its slots hold a token. Where a region lies is the space's business, how
long it is that of the caches built on this one. Shares nothing: equal prompts are computed and stored twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.contiguous.space import Space
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.plan import CopyBlock, MemoryOp, Poison
from minipaged.request import Request, Sequence


@dataclass(frozen=True, slots=True)
class Admission:
    """What an admitted sequence got: room for so many tokens, none of which was there before."""

    num_new: int
    num_cached: int = 0


@dataclass(slots=True)
class Holding:
    """One sequence's region.

    Args:
        table: all its slots in order; empty for a fork that found no hole.
        end: slots that hold a token once the open step is done. They are the first ones.
        heir_of: of a fork that found no hole, the sequence with whose tokens it begins.
    """

    table: tuple[int, ...]
    end: int
    heir_of: int | None = None


class ContiguousCache:
    """What the reserving and the growing cache have in common.

    Args:
        space: gives out the regions.
        poison_freed: log a `Poison` for every slot that becomes free, so that a stale read shows as NaN.

    Raises:
        ValueError: from its methods, a sequence that is not in the state they ask for. Nothing has changed then.
    """

    block_size = 1  # of the block tables that go into the plan

    def __init__(self, space: Space, *, poison_freed: bool = False) -> None:
        self.space = space
        self.poison_freed = poison_freed
        self._holdings: dict[int, Holding] = {}  # by sequence id
        self._operations: list[MemoryOp] = []
        self._held_slots = 0
        self._live_slots = 0

    def slots_for(self, sequence: Sequence, end: int) -> int:
        """How many slots to ask the space for, for a sequence that has `end` tokens after the open step."""
        raise NotImplementedError

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def total_slots(self) -> int:
        """Token slots in the pool."""
        return self.space.num_slots

    @property
    def max_sequence_slots(self) -> int:
        """Token slots that one sequence can hold at most."""
        return self.space.largest_region

    @property
    def held_slots(self) -> int:
        """Token slots in all regions, filled or not."""
        return self._held_slots

    @property
    def live_slots(self) -> int:
        """Held slots that hold a token, once the open step is done."""
        return self._live_slots

    def table(self, sequence: Sequence) -> tuple[int, ...]:
        """The sequence's region, slot by slot; empty when it holds none."""
        holding = self._holdings.get(sequence.id)
        return holding.table if holding else ()

    def slots_needed(self, sequence: Sequence, want: int) -> int:
        """The length of the hole without which an admission is refused."""
        return self.space.granted(self.slots_for(sequence, min(want, len(sequence.tokens))))

    # Sequences come, grow, part and go -------------------------------------------------------------------------------

    def admit(self, sequence: Sequence, want: int, reserve: int = 0) -> Admission | None:
        """Give a waiting sequence a region.

        Args:
            sequence: holds no region yet.
            want: tokens to compute in this step at most, at least 1.
            reserve: token slots that must stay free behind the admission.

        Returns:
            None when no hole is long enough; nothing has changed then.
        """
        if sequence.id in self._holdings:
            raise ValueError(f"{self._name}.admit: sequence {sequence.id} is admitted already; release it first")
        num_new = min(want, len(sequence.tokens))
        base = self.space.allocate(self.slots_for(sequence, num_new))
        if base is not None and self.space.num_free < reserve:
            self.space.free(base)
            base = None
        if base is None:
            return None
        self._hold(sequence, base, num_new)
        return Admission(num_new)

    def continue_walk(self, sequence: Sequence) -> int:
        """Nothing is shared, so nothing is found."""
        return 0

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Make room for `n` more tokens behind the computed ones; False, and nothing changed, when there is none."""
        raise NotImplementedError

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Give the child a region of its own and copy the parent's tokens into it, slot by slot.

        A region cannot be shared, since two answers cannot both go on behind it. When no hole is long enough the child
        holds nothing but the hope that the parent ends now and leaves it its region; else its first `grow` is refused,
        so that the scheduler lets it wait and computes it again later.
        """
        of_parent = self._require("fork", parent)
        if child.id in self._holdings:
            raise ValueError(f"{self._name}.fork: sequence {child.id} is admitted already; release it first")
        base = self.space.allocate(self.slots_for(child, of_parent.end))
        if base is None:
            self._holdings[child.id] = Holding((), 0, heir_of=parent.id)
            return
        of_child = self._hold(child, base, of_parent.end)
        self._operations += map(CopyBlock, of_parent.table[: of_parent.end], of_child.table)

    def release(self, sequence: Sequence) -> None:
        """Take the sequence's region back, or pass it on to a fork of it that holds none."""
        holding = self._require("release", sequence)
        del self._holdings[sequence.id]
        heirs = [id for id, other in self._holdings.items() if other.heir_of == sequence.id]
        if heirs:  # the fork's tokens are all there, since nothing was computed since
            self._holdings[heirs[0]] = Holding(holding.table, holding.end)
            for id in heirs[1:]:
                self._holdings[id].heir_of = heirs[0]
        elif holding.table:
            self.space.free(holding.table[0])
            self._held_slots -= len(holding.table)
            self._live_slots -= holding.end
            self._poison(holding.table)

    def end_request(self, request: Request) -> None:
        """Nothing is kept of a request beyond its sequences."""

    # Steps -----------------------------------------------------------------------------------------------------------

    def take_operations(self) -> list[MemoryOp]:
        """The operations decided since the last call, in order; they go into the plan and are executed with it."""
        operations, self._operations = self._operations, []
        return operations

    def end_step(self) -> None:
        """The step went well. The books said so already."""

    def abort_step(self, unexecuted: list[MemoryOp]) -> None:
        """The step failed; its sequences are to be released.

        Args:
            unexecuted: the rest of its operations; they go in front of the next step's, since the books count on them.
        """
        self._operations = unexecuted + self._operations

    # Books -----------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Verify the books.

        Raises:
            AssertionError: names the sequence or the slot and what is wrong with it.
        """
        self.space.check()
        regions = {}
        for id, holding in self._holdings.items():
            table = holding.table
            assert holding.end <= len(table), f"sequence {id}: {holding.end} tokens in a region of {len(table)}"
            if table:
                assert table == tuple(range(table[0], table[0] + len(table))), f"sequence {id}: its slots are no run"
                regions[table[0]] = len(table)
        assert regions == self.space.taken, "the space has given out regions that no sequence holds, or others"
        assert self._held_slots == sum(regions.values()), f"held_slots is {self._held_slots}"
        assert self._live_slots == sum(h.end for h in self._holdings.values()), f"live_slots is {self._live_slots}"
        assert self._held_slots + self.space.num_free == self.total_slots, "held and free slots are not all slots"

    # Within ----------------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _hold(self, sequence: Sequence, base: int, end: int) -> Holding:
        holding = Holding(tuple(range(base, base + self.space.taken[base])), end)
        self._holdings[sequence.id] = holding
        self._held_slots += len(holding.table)
        self._live_slots += end
        return holding

    def _poison(self, slots: tuple[int, ...]) -> None:
        if self.poison_freed:
            self._operations += map(Poison, slots)

    def _require(self, verb: str, sequence: Sequence) -> Holding:
        holding = self._holdings.get(sequence.id)
        if holding is None:
            raise ValueError(f"{self._name}.{verb}: sequence {sequence.id} holds no region; admit it first")
        return holding


def in_engine(make: Callable[..., ContiguousCache]) -> Callable[..., Any]:
    """A maker for `Parts.memory`: `LLM(parts=Parts(memory=in_engine(ReservingCache)), block_size=1)`.

    Args:
        make: of a number of slots and `poison_freed`, the cache.

    Raises:
        ValueError: from the maker, an engine whose blocks are not one slot long, or that has a host pool.
    """

    def memory(
        pool: BlockPool,
        tree: PrefixTree,
        swap: SwapManager | None = None,
        *,
        poison_freed: bool = False,
        table: object = None,  # there are no tables to be made,
        share_prefixes: bool = False,  # nothing is shared,
        block_bytes: int = 0,  # and nothing is swapped
    ) -> ContiguousCache:
        if tree.block_size != 1 or swap is not None:
            raise ValueError(
                f"in_engine: block_size is {tree.block_size}, host_blocks {swap.num_blocks if swap else 0}; a "
                "contiguous cache takes block_size=1 and host_blocks=0"
            )
        return make(pool.num_blocks, poison_freed=poison_freed)

    return memory
