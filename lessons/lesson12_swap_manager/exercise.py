"""Lesson 12: what stays when memory runs out. Three tasks; `python -m lessons check 12` says how you stand.

What is given is in `given.py`, short and worth a look. In the books of the host pool: `self.free`, `self.order` (blocks
with a copy, least recently used first), `self.clean` and `self.reading`. In the mover: `self.swap` (the books, as
the engine knows them: it says `mark_clean(block)` or `mark_sole(block)`, and either counts as use), `self.operations`
(the log), `take`, `place`, `take_host_block` and `drop`.
"""

from __future__ import annotations

from lessons.lesson12_swap_manager.given import GivenSwap, GivenTiers, Node, SwapIn, SwapOut  # noqa: F401


class SwapManager(GivenSwap):
    """Which host blocks are free, and which copy goes first when none is."""

    def take(self) -> int:
        """Task 1. Take a free host block for a new copy. It is sole, and nothing has been used later.

        Raises:
            IndexError: none is free.

        free == [2, 1], order == [0]: take() -> 1, say. Now free == [2] and order == [0, 1].
        """
        raise NotImplementedError("lesson 12, task 1: take a free host block")

    def use(self, block: int, clean: bool) -> None:
        """Task 1, too. The copy in `block` was used just now; from now on it is clean, or it is sole.

        order == [0, 1, 2], clean == {1}: use(0, clean=True) -> order == [1, 2, 0], clean == {0, 1};
        then use(1, clean=False) -> order == [2, 0, 1], clean == {0}.
        """
        raise NotImplementedError("lesson 12, task 1: a copy was used")

    def give_back(self, block: int) -> None:
        """Task 1, too. The copy in `block` is dropped. The block holds nothing, and can be taken again.

        free == [2], order == [0, 1], clean == {1}: give_back(1) -> free == [2, 1], order == [0], clean == set().
        """
        raise NotImplementedError("lesson 12, task 1: a copy is dropped")

    def victim(self) -> int | None:
        """Task 2. The host block whose copy is to be dropped next. Nothing changes yet.

        A copy that is being read cannot go. Of the others a clean one goes before any sole one, since its content is on
        the device, too; and among equals the one that was used longest ago.

        Returns:
            The block; None when there is no copy, or all of them are being read.

        order == [3, 0, 2, 1], clean == {2, 1}, reading == {2}: victim() -> 1. With clean == set(): 3.
        """
        raise NotImplementedError("lesson 12, task 2: choose a victim")


class Tiers(GivenTiers):
    """Moves contents between the two pools. A node stands for one full block's content.

    `node.host` is the host block that holds a copy of it, or None.
    """

    def evict(self, node: Node, block: int) -> None:
        """Task 3. Device block `block` is about to be given to somebody else. Save what it holds, if it can be saved.

        `node` is its content; nobody needs it at the moment. There are three cases:

        - The host has a copy already. From now on that is the only one, and this counts as use of it.
        - A host block can be had: log a `SwapOut(device, host)`, and let `node.host` say where the copy is.
        - None can be had: drop the node.

        node.host is None, take_host_block() -> 5, block 2: operations == [SwapOut(device=2, host=5)], node.host == 5.
        """
        raise NotImplementedError("lesson 12, task 3: evict")

    def bring_back(self, node: Node) -> int:
        """Task 3, too. Bring a node's content from the host to a device block. Its copy on the host stays.

        Returns:
            The device block, taken with `take()`, where the node was placed with `place()`.

        node.host == 5, take() -> 2: operations == [SwapIn(host=5, device=2)], node.host == 5, node.device == 2.
        """
        raise NotImplementedError("lesson 12, task 3: bring back")
