"""Tiers: where the content of each node lies, device or host, and the log of what must be moved for it.

It takes blocks from the pool, gives up what was used longest ago, and brings it back. It knows nodes and blocks, and no
sequences: who needs a block, and for how long, is `kv_manager.py`'s business.

The life of a block's content::

                    the plan fills the block              nobody holds it
      (computed) ──────────────────────────▶ held ◀────────────────────────▶ evictable
                                              ▲        somebody needs it         │ its block is needed:
                                              │                                  │ SwapOut, unless the host
                                              │ SwapIn                           ▼ has a copy already
                                              └───────────────────────────── on the host
                                                                                 │ the host is full,
                                                                                 ▼ or there is none
                                                                              dropped (recomputed when needed)

Operations are logged in the order in which they were decided, and hold as if each had happened at once.
"""

from __future__ import annotations

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.prefix_tree import Node, PrefixTree, Walk
from minipaged.memory.stats import Counts
from minipaged.memory.swap import SwapManager
from minipaged.plan import CopyBlock, MemoryOp, Poison, SwapIn, SwapOut


class Tiers:
    """Two pools under one tree. Everything is O(1) per block touched.

    Args:
        pool: the device blocks.
        tree: the nodes.
        swap: the host blocks' books, or None when there are none.
        poison_freed: log a `Poison` for each block that becomes free.
    """

    def __init__(self, pool: BlockPool, tree: PrefixTree, swap: SwapManager | None, *, poison_freed: bool) -> None:
        self.pool = pool
        self.tree = tree
        self.swap = swap
        self.counts = Counts()
        self.operations: list[MemoryOp] = []
        #: Nodes touched since a recorder last took them, by id, those that are gone too; None when nobody records.
        self.journal: dict[int, Node] | None = None
        self._poison_freed = poison_freed
        self._on_device: dict[int, Node] = {}  # device block -> the node that it holds
        self._on_host: dict[int, Node] = {}  # host block -> the node that it holds

    def take(self) -> int:
        """A device block for the caller alone. The caller has looked at `pool.num_available`."""
        if self.pool.num_free:
            return self.pool.allocate()
        block = self.pool.evict()
        self._evicted(self._on_device.pop(block), block)
        return block

    def release(self, block: int) -> None:
        """One table less holds the block; what it holds of a node is kept as long as the room is not needed."""
        cached = block in self._on_device
        if self.pool.release(block, cached=cached) and not cached:
            self._poison(block)

    def place(self, node: Node, block: int) -> None:
        """The node's content is (or, in the open step, will be) in this held device block."""
        node.device = block
        self._on_device[block] = node
        self._touch(node)
        if node.host is not None:
            assert self.swap is not None
            self.swap.mark_clean(node.host)

    def available_beside(self, walk: Walk) -> int:
        """Blocks that can be had once the walk's own are held: those that nobody held can then not be evicted."""
        revived = sum(node.device is not None and self.pool.count(node.device) == 0 for node in walk.path)
        return self.pool.num_available - revived

    def bring(self, walk: Walk) -> list[int]:
        """Blocks for the caller with the content that a walk has found; there is room for it.

        What is on the device is held, what is on the host is swapped in, and the source is copied into a block to be
        written on, without being held itself.
        """
        on_device = [node for node in walk.path if node.device is not None]
        on_host = walk.path[len(on_device) :]  # a node on the device has its parent on the device
        source = walk.source
        blocks: list[int] = []
        # Held and pinned before the first block is taken: what is about to be read must not be evicted on the way.
        for node in on_device:
            assert node.device is not None
            self.pool.hold(node.device)
            blocks.append(node.device)
        for node in (*on_host, *([source] if source is not None and source.device is None else [])):
            assert self.swap is not None and node.host is not None
            self.swap.pin(node.host)
        blocks.extend(self._swap_in(node) for node in on_host)
        if source is not None:
            blocks.append(self._private_copy(source))
        self.counts.tokens_from_device += len(on_device) * self.tree.block_size
        self.counts.tokens_from_host += len(on_host) * self.tree.block_size
        self.counts.tokens_copied += walk.num_shared
        return blocks

    def copy(self, source: int, destination: int) -> None:
        """Copy a device block."""
        self.operations.append(CopyBlock(source, destination))
        self.counts.copies += 1

    def forget(self, top: Node) -> None:
        """Take a node and all below it out of the tree. Device blocks that nobody holds are free then."""
        nodes = [top]
        for node in nodes:  # grows as it goes: parents before children
            nodes.extend(self.tree.children(node) if node.num_children else ())
        for node in reversed(nodes):
            if node.device is not None:
                del self._on_device[node.device]
                if self.pool.count(node.device) == 0:
                    self.pool.discard(node.device)
                    self._poison(node.device)
                node.device = None
                self._touch(node)
            self._lose_host_copy(node)
            if node.parent is not None:
                self.tree.remove(node)

    def _swap_in(self, node: Node) -> int:
        """Bring a pinned node back to the device. Its host copy stays, clean."""
        assert node.host is not None
        block = self.take()
        self.operations.append(SwapIn(node.host, block))
        self.counts.swaps_in += 1
        self.place(node, block)
        return block

    def _private_copy(self, source: Node) -> int:
        """A block with the node's content, to be written on. On the host only, the node is pinned."""
        before = source.device
        block = self.take()
        if source.device is not None:
            self.copy(source.device, block)
        elif block != before:  # else it was evicted just now, and its content already lies where it is wanted
            assert self.swap is not None and source.host is not None
            self.operations.append(SwapIn(source.host, block))
            self.counts.swaps_in += 1
            self.swap.mark_sole(source.host)
        return block

    def _evicted(self, node: Node, block: int) -> None:
        """The node's block goes to somebody else; see to the content."""
        node.device = None
        self._touch(node)
        self.counts.evictions += 1
        if node.host is not None:
            assert self.swap is not None
            self.swap.mark_sole(node.host)  # a clean copy is never written twice; the eviction counts as its use
            return
        host = self._take_host_block()
        if host is None:
            self.counts.drops += 1
            self.forget(node)
            return
        self.operations.append(SwapOut(block, host))
        self.counts.swaps_out += 1
        node.host = host
        self._on_host[host] = node

    def _take_host_block(self) -> int | None:
        """A host block, if need be that of the copy that is missed least; None when all are being read."""
        if self.swap is None:
            return None
        if not self.swap.num_free:
            victim = self.swap.victim()
            if victim is None:
                return None
            node = self._on_host[victim]
            if node.device is not None:
                self._lose_host_copy(node)
            else:  # the order is children first, so this is a leaf
                self.counts.drops += 1
                self.forget(node)
        return self.swap.take()

    def _lose_host_copy(self, node: Node) -> None:
        if node.host is not None:
            assert self.swap is not None
            del self._on_host[node.host]
            self.swap.give_back(node.host)
            node.host = None
            self._touch(node)

    def _touch(self, node: Node) -> None:
        """It is new, or its content lies elsewhere than before."""
        if self.journal is not None:
            self.journal[node.id] = node

    def _poison(self, block: int) -> None:
        if self._poison_freed:
            self.operations.append(Poison(block))

    def check(self) -> None:
        """Verify pools, tree and the maps between them.

        Raises:
            AssertionError: names the block or node and what is wrong with it.
        """
        self.pool.check()
        self.tree.check()
        for node in self.tree:
            assert node.device is not None or node.host is not None, f"{node} is resident nowhere"
            parent = node.parent
            assert parent is not None
            if node.device is not None:
                assert self._on_device.get(node.device) is node, f"{node}: block {node.device} holds another node"
                assert parent.parent is None or parent.device is not None, f"{node} is on the device, its parent not"
            if node.host is not None:
                assert self._on_host.get(node.host) is node, f"{node}: host block {node.host} holds another node"
        num_on_device = sum(node.device is not None for node in self.tree)
        assert len(self._on_device) == num_on_device, "a device block names a node that is gone"
        assert len(self._on_host) == sum(node.host is not None for node in self.tree), "a host block names a lost node"
        self._check_order(self.pool.eviction_order, self._on_device, "device")
        for block in self.pool.free_blocks:
            assert block not in self._on_device, f"block {block} is free and holds {self._on_device[block]}"
        if self.swap is not None:
            self.swap.check()
            assert self.swap.num_used == len(self._on_host), "host blocks are used that hold no node"
            sole = [block for block in self.swap.drop_order if not self.swap.is_clean(block)]
            self._check_order(tuple(sole), self._on_host, "host")
            for block, node in self._on_host.items():
                assert self.swap.is_clean(block) == (node.device is not None), f"{node}: host copy's mark is wrong"

    def _check_order(self, order: tuple[int, ...], nodes: dict[int, Node], tier: str) -> None:
        """Children go before their parents."""
        gone: set[int] = set()
        for block in order:
            node = nodes.get(block)
            assert node is not None, f"{tier} block {block} is evictable and holds no node"
            assert node.parent is None or node.parent.id not in gone, f"{tier} block {block} goes after its parent"
            gone.add(node.id)
