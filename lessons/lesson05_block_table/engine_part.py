"""The engine's own pool and table under the exercise's names, so that the same check can be put to them."""

from __future__ import annotations

from lessons.lesson05_block_table.given import GivenPool
from minipaged.memory import block_pool
from minipaged.memory.block_table import BlockTable

__all__ = ["BlockPool", "BlockTable"]


class BlockPool(GivenPool):
    """The engine gives a block back with `release`, which is also told whether to keep the content."""

    def free(self, block: int) -> bool:
        return block_pool.BlockPool.release(self, block, cached=False)
