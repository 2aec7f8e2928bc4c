"""BlockTable: one sequence's map from logical blocks to physical blocks, and the slot arithmetic.

Knows nothing of the pool: it neither takes nor returns blocks.

    position 9, block_size 4, blocks [7, 2, 5]
        logical block  9 // 4 = 2      offset  9 % 4 = 1
        physical block blocks[2] = 5   slot    5 * 4 + 1 = 21
"""

from __future__ import annotations


class BlockTable:
    """Logical index -> physical block. `blocks[i]` holds the tokens at positions i * block_size and on.

    Args:
        block_size: token slots in a block.
    """

    __slots__ = ("block_size", "blocks")

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.blocks: list[int] = []

    @property
    def num_slots(self) -> int:
        """Token slots that the table covers."""
        return len(self.blocks) * self.block_size

    def blocks_missing(self, num_tokens: int) -> int:
        """How many more blocks it takes to hold positions 0 … num_tokens - 1.

        A count that is a multiple of `block_size` fills its last block and opens none: the token after it does.
        """
        missing = -(-num_tokens // self.block_size) - len(self.blocks)
        return missing if missing > 0 else 0

    def slot(self, position: int) -> int:
        """The slot of the token at `position`: where in the pool its K and V lie.

        Raises:
            IndexError: the table does not reach that far.
        """
        if not 0 <= position < self.num_slots:
            raise IndexError(f"BlockTable.slot: position {position} is outside the table's {self.num_slots} slots")
        logical, offset = divmod(position, self.block_size)
        return self.blocks[logical] * self.block_size + offset
