"""Lesson 12, our answer. The engine's own is in minipaged/memory/swap.py and tiers.py."""

from __future__ import annotations

from lessons.lesson12_swap_manager.given import GivenSwap, GivenTiers, Node, SwapIn, SwapOut


class SwapManager(GivenSwap):
    """Which host blocks are free, and which copy goes first when none is."""

    def take(self) -> int:
        """Taking is using: a new copy is the last to go."""
        block = self.free.pop()
        self.order.append(block)
        return block

    def use(self, block: int, clean: bool) -> None:
        """To the end of the queue. The flag is set anew, in both directions."""
        self.order.remove(block)
        self.order.append(block)
        if clean:
            self.clean.add(block)
        else:
            self.clean.discard(block)

    def give_back(self, block: int) -> None:
        """All that was known of it is forgotten."""
        self.order.remove(block)
        self.clean.discard(block)
        self.free.append(block)

    def victim(self) -> int | None:
        """What costs nothing first; then what was missed by nobody for longest."""
        can_go = [block for block in self.order if block not in self.reading]
        clean = [block for block in can_go if block in self.clean]
        return next(iter(clean or can_go), None)


class Tiers(GivenTiers):
    """Moves contents between the two pools."""

    def evict(self, node: Node, block: int) -> None:
        """A full block never changes, so a copy that was right once is right for good: it is never written twice."""
        if node.host is not None:
            assert self.swap is not None
            self.swap.mark_sole(node.host)
            return
        host = self.take_host_block()
        if host is None:
            self.drop(node)
        else:
            self.operations.append(SwapOut(block, host))
            node.host = host

    def bring_back(self, node: Node) -> int:
        """Take first: that may itself evict, and its SwapOut has to stand in the log before our SwapIn."""
        assert node.host is not None
        block = self.take()
        self.operations.append(SwapIn(node.host, block))
        self.place(node, block)
        return block
