"""CopyingManager: each of a prompt's answers gets the whole cache to itself, by copying all of it.

The naive way, with the best manners it can have: it takes part in preemption, refuses without changing anything, and
its books can be checked. What it copies hangs below a root of its own in the tree, so nobody shares it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from minipaged.memory.kv_manager import Admission, KVManager
from minipaged.request import Request, Sequence


class CopyingManager(KVManager):
    """As `KVManager`, but answers share nothing.

    The copies are made when the first of the answers grows, before anyone writes: growing can be refused, a fork not.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._uncopied: dict[int, Sequence] = {}  # forked, and still on the blocks of another
        self._admitted: Sequence | None = None

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Promises the child blocks of its own."""
        super().fork(parent, child)
        self._uncopied[child.id] = child

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Keeps the promises first; False, and nothing changed, when there is no room for them and for the tokens."""
        if self._uncopied:
            table = self._require("grow", sequence).table
            owed = sum(len(self.table(child)) for child in self._uncopied.values())
            if owed + table.blocks_missing(sequence.num_computed + n) > self.pool.num_available:
                return False
            for child in self._uncopied.values():
                self._copy_all(child)
            self._uncopied.clear()
        return super().grow(sequence, n)

    def admit(self, sequence: Sequence, want: int, reserve: int = 0) -> Admission | None:
        """One that was preempted after the answers parted comes back alone."""
        self._admitted = sequence if sequence.request.forked else None
        try:
            return super().admit(sequence, want, reserve)
        finally:
            self._admitted = None

    def release(self, sequence: Sequence) -> None:
        """What it had of its own is of no use to anybody else."""
        super().release(sequence)
        self._uncopied.pop(sequence.id, None)
        root = self.tree.root(("copy", sequence.id))
        for node in self.tree.children(root) if root else ():
            self.tiers.forget(node)

    def _root_key(self, request: Request) -> Hashable:
        return ("copy", self._admitted.id) if self._admitted is not None else super()._root_key(request)

    def _copy_all(self, child: Sequence) -> None:
        holding = self._holdings[child.id]
        root = self.tree.hold_root(("copy", child.id))
        self.tree.release_root(holding.root)
        shared, holding.root, holding.nodes = holding.nodes, root, []
        for i, original in enumerate(holding.table.blocks):
            block = self.tiers.take()
            self.tiers.copy(original, block)
            if i < len(shared):
                node = self.tree.insert(holding.last_node, shared[i].tokens)
                self.tiers.place(node, block)
                holding.nodes.append(node)
            holding.table.blocks[i] = block
            self.tiers.release(original)
