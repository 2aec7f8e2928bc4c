"""KVManager: the one door by which the scheduler reaches memory.

It gives each admitted sequence a block table, sharing what is resident of its tokens, and takes it back. It decides
nothing about who may run (the scheduler does) and moves nothing (the runner does, by the operations logged here).

Prefix sharing, resuming after a preemption, swapping in and recomputing are one walk down the prefix tree with
different luck: what is on the device is shared, what is on the host is brought back, the rest is computed.

A refusal changes nothing: whatever is missing is counted before the first block is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.block_table import BlockTable
from minipaged.memory.holding import Holding
from minipaged.memory.open_step import OpenStep
from minipaged.memory.prefix_tree import PrefixTree, Walk
from minipaged.memory.stats import MemoryStats
from minipaged.memory.swap import SwapManager
from minipaged.memory.tiers import Tiers
from minipaged.plan import MemoryOp
from minipaged.request import Request, Sequence


@dataclass(frozen=True, slots=True)
class Admission:
    """What an admitted sequence got.

    Args:
        num_new: tokens that it computes in this step; their slots are in its table, behind the cached ones.
        num_from_device: tokens shared in place.
        num_from_host: tokens brought back by `SwapIn`.
        num_copied: tokens of one more block that were copied (or brought back) into a block of its own.
    """

    num_new: int
    num_from_device: int
    num_from_host: int
    num_copied: int

    @property
    def num_cached(self) -> int:
        """Tokens whose K and V are in its blocks already."""
        return self.num_from_device + self.num_from_host + self.num_copied


class KVManager:
    """Block tables over one tree and two pools.

    Args:
        pool: the device pool.
        tree: the prefix tree; its block size is the manager's.
        swap: the host pool's books; None to recompute instead of swapping.
        share_prefixes: False keeps what each request computes to itself, and forgets it with the request.
        block_bytes: what a block weighs, for `stats` alone.
        poison_freed: log a `Poison` for every block that becomes free, so that a stale read shows as NaN.
        table: makes a sequence's empty block table, of a block size.
        tiers: makes what moves contents between the two pools, of pool, tree and swap.
    """

    def __init__(
        self,
        pool: BlockPool,
        tree: PrefixTree,
        swap: SwapManager | None = None,
        *,
        share_prefixes: bool = True,
        block_bytes: int = 0,
        poison_freed: bool = False,
        table: Callable[[int], BlockTable] = BlockTable,
        tiers: Callable[..., Tiers] = Tiers,
    ) -> None:
        self.pool = pool
        self.tree = tree
        self.swap = swap
        self._new_table = table
        self.block_size = tree.block_size
        self.share_prefixes = share_prefixes
        self.block_bytes = block_bytes
        self.tiers = tiers(pool, tree, swap, poison_freed=poison_freed)
        self._holdings: dict[int, Holding] = {}  # by sequence id
        self._step = OpenStep(tree, self.tiers)

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def total_slots(self) -> int:
        """Token slots in the device pool."""
        return self.pool.num_blocks * self.block_size

    @property
    def max_sequence_slots(self) -> int:
        """Token slots that one sequence can hold at most: the whole pool, since blocks need not be neighbours."""
        return self.total_slots

    @property
    def held_slots(self) -> int:
        """Token slots in held blocks, filled or not."""
        return self.pool.num_held * self.block_size

    @property
    def live_slots(self) -> int:
        """Held slots that hold a token, once the open step is done; a shared slot counts once."""
        fill = {h.table.blocks[-1]: h.end % self.block_size for h in self._holdings.values() if h.end % self.block_size}
        return (self.pool.num_held - len(fill)) * self.block_size + sum(fill.values())

    def table(self, sequence: Sequence) -> tuple[int, ...]:
        """A copy of the sequence's block table; empty when it holds nothing."""
        holding = self._holdings.get(sequence.id)
        return tuple(holding.table.blocks) if holding else ()

    def slot(self, sequence: Sequence, position: int) -> int:
        """The slot that holds the K and V of the sequence's token at `position`.

        Raises:
            ValueError: the sequence holds no blocks.
            IndexError: its table does not reach that far.
        """
        return self._require("slot", sequence).table.slot(position)

    # Sequences come, grow, part and go -------------------------------------------------------------------------------

    def admit(self, sequence: Sequence, want: int, reserve: int = 0) -> Admission | None:
        """Give a waiting sequence a table: what is resident of its tokens, and room for what it computes in this step.

        Args:
            sequence: holds no table yet.
            want: tokens to compute in this step at most, at least 1.
            reserve: token slots that must stay available behind the admission.

        Returns:
            None when it does not fit; nothing has changed then.

        Raises:
            ValueError: it is admitted already.
        """
        if sequence.id in self._holdings:
            raise ValueError(f"KVManager.admit: sequence {sequence.id} is admitted already; release it first")
        tokens = sequence.tokens
        key = self._root_key(sequence.request)
        walk = self.tree.walk(self.tree.root(key), tokens, 0, len(tokens) - 1)
        num_cached = len(walk.path) * self.block_size + walk.num_shared
        num_new = min(want, len(tokens) - num_cached)
        num_on_device = sum(node.device is not None for node in walk.path)
        missing = -(-(num_cached + num_new) // self.block_size) - num_on_device
        if missing + -(-reserve // self.block_size) > self.tiers.available_beside(walk):
            return None
        holding = Holding(sequence, self.tree.hold_root(key), self._new_table(self.block_size))
        self._holdings[sequence.id] = holding
        self._follow(holding, walk)
        end = num_cached + num_new
        self._extend(holding, holding.table.blocks_missing(end), num_cached, end)
        num_from_device = num_on_device * self.block_size
        num_from_host = (len(walk.path) - num_on_device) * self.block_size
        return Admission(num_new, num_from_device, num_from_host, walk.num_shared)

    def continue_walk(self, sequence: Sequence) -> int:
        """Share what has become resident behind a running sequence's computed tokens since it was admitted.

        Only at a block boundary is there something to find; at least one token is left to compute. What it finds may
        be filled by this very step, so before the step ends the sequence must `grow` or be released.

        Returns:
            How many more tokens are cached now, 0 for none.

        Raises:
            ValueError: the sequence holds no blocks.
        """
        holding = self._require("continue_walk", sequence)
        start = sequence.num_computed
        if start % self.block_size:
            return 0
        walk = self.tree.walk(holding.last_node, sequence.tokens, start, len(sequence.tokens) - 1)
        on_host = sum(node.device is None for node in walk.path)
        if on_host + (walk.source is not None) > self.tiers.available_beside(walk):
            walk = Walk(walk.path[: len(walk.path) - on_host], None, 0)  # what takes no block can always be had
        self._follow(holding, walk)
        return holding.end - start

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Make room for `n` more tokens behind the computed ones; False, and nothing changed, when there is none.

        A block that others hold too is copied just before it is written on.

        Raises:
            ValueError: the sequence holds no blocks.
        """
        holding = self._holdings.get(sequence.id) or self._require("grow", sequence)
        start, blocks = sequence.num_computed, holding.table.blocks
        end = start + n
        missing = holding.table.blocks_missing(end) if end > len(blocks) * self.block_size else 0
        shared = start % self.block_size != 0 and self.pool.count(blocks[-1]) > 1  # and about to be written on
        if missing or shared:  # once in a while: most tokens go into the last block
            if missing + shared > self.pool.num_available:
                return False
            if shared:
                original, blocks[-1] = blocks[-1], self.tiers.take()
                self.tiers.copy(original, blocks[-1])
                self.tiers.release(original)
        self._extend(holding, missing, start, end)
        return True

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """A second table over the parent's blocks. Takes no block: who writes first on a shared one copies it.

        Args:
            parent: holds blocks, and is not in the open step.
            child: holds none yet.

        Raises:
            ValueError: either is not so. Nothing has changed then.
        """
        of_parent = self._require("fork", parent)
        if child.id in self._holdings:
            raise ValueError(f"KVManager.fork: sequence {child.id} is admitted already; release it first")
        if of_parent.in_step:
            raise ValueError(f"KVManager.fork: sequence {parent.id} is in the open step; end the step first")
        root = self.tree.hold_root(of_parent.root.key)
        holding = Holding(child, root, self._new_table(self.block_size), list(of_parent.nodes), of_parent.end)
        holding.table.blocks.extend(of_parent.table.blocks)
        for block in holding.table.blocks:
            self.pool.hold(block)
        self._holdings[child.id] = holding

    def release(self, sequence: Sequence) -> None:
        """Take the sequence's table back, last block first, so that what is cached goes leaf first.

        Raises:
            ValueError: it holds no blocks, or is in the open step. Nothing has changed then.
        """
        holding = self._require("release", sequence)
        if holding.in_step:
            raise ValueError(f"KVManager.release: sequence {sequence.id} is in the open step; end the step first")
        del self._holdings[sequence.id]
        for block in reversed(holding.table.blocks):
            self.tiers.release(block)
        self.tree.release_root(holding.root)

    def end_request(self, request: Request) -> None:
        """All sequences of the request have ended; without sharing, what they computed is forgotten."""
        root = None if self.share_prefixes else self.tree.root(self._root_key(request))
        if root is not None:
            for node in self.tree.children(root):
                self.tiers.forget(node)

    # Steps -----------------------------------------------------------------------------------------------------------

    def take_operations(self) -> list[MemoryOp]:
        """The operations decided since the last call, in order; they go into the plan and are executed with it."""
        operations, self.tiers.operations = self.tiers.operations, []
        return operations

    def end_step(self) -> None:
        """The step went well: what it computed is committed. Tables may change: equal contents become one block."""
        self._step.commit()

    def abort_step(self, unexecuted: list[MemoryOp]) -> None:
        """The step failed: what it should have computed is not there. Its sequences are to be released.

        Args:
            unexecuted: the rest of its operations; they go in front of the next step's, since the books count on them.
        """
        self._step.abort()
        self.tiers.operations = unexecuted + self.tiers.operations

    # Books -----------------------------------------------------------------------------------------------------------

    def stats(self) -> MemoryStats:
        """The books in numbers."""
        counts = self.tiers.counts
        return MemoryStats(
            **{name: getattr(counts, name) for name in counts.__slots__},
            free_blocks=self.pool.num_free,
            evictable_blocks=self.pool.num_evictable,
            held_blocks=self.pool.num_held,
            host_blocks=self.swap.num_used if self.swap else 0,
            bytes_moved=(counts.copies + counts.swaps_out + counts.swaps_in) * self.block_bytes,
        )

    def check(self) -> None:
        """Verify the books.

        Raises:
            AssertionError: names the block, node or sequence and what is wrong with it.
        """
        self.tiers.check()
        holders = [0] * self.pool.num_blocks
        for holding in self._holdings.values():
            for block in holding.table.blocks:
                holders[block] += 1
            holding.check()
        for block, count in enumerate(holders):
            assert self.pool.count(block) == count, f"block {block}: count {self.pool.count(block)}, in {count} tables"
        for root in self.tree.roots:
            count = sum(holding.root is root for holding in self._holdings.values())
            assert root.num_holders == count, f"root {root.key!r}: {root.num_holders} holders, {count} sequences"

    # Within ----------------------------------------------------------------------------------------------------------

    def _root_key(self, request: Request) -> Hashable:
        return ("salt", request.cache_salt) if self.share_prefixes else ("request", request.id)

    def _follow(self, holding: Holding, walk: Walk) -> None:
        """Take what the walk found into the table. There is room for it."""
        holding.table.blocks.extend(self.tiers.bring(walk))
        holding.nodes.extend(walk.path)
        holding.end += len(walk.path) * self.block_size + walk.num_shared

    def _extend(self, holding: Holding, missing: int, start: int, end: int) -> None:
        """Blocks for its tokens from `start` to `end`, which the open step computes. There is room for them."""
        peak = holding.sequence.peak_computed
        if start < peak:
            self.tiers.counts.tokens_recomputed += min(peak, end) - start
        for _ in range(missing):
            holding.table.blocks.append(self.tiers.take())
        self._step.compute(holding, end)

    def _require(self, verb: str, sequence: Sequence) -> Holding:
        holding = self._holdings.get(sequence.id)
        if holding is None:
            raise ValueError(f"KVManager.{verb}: sequence {sequence.id} holds no blocks; admit it first")
        return holding
