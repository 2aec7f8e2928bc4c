"""FirstInFirstOut: a host pool whose oldest copy goes first, however often it was used.

A queue is the simplest order that there is, and it never asks whether a copy was of use to anybody.
"""

from __future__ import annotations

from minipaged.memory.swap import SwapManager


class FirstInFirstOut(SwapManager):
    """As the engine's, but a use changes nothing about a copy's turn."""

    def __init__(self, num_blocks: int) -> None:
        super().__init__(num_blocks)
        self._order: list[int] = []  # as they came
        self._reading: set[int] = set()

    @property
    def drop_order(self) -> tuple[int, ...]:
        return tuple(self._order)

    def victim(self) -> int | None:
        return next((block for block in self._order if block not in self._reading), None)

    def take(self) -> int:
        block = super().take()
        self._order.append(block)
        return block

    def give_back(self, block: int) -> None:
        super().give_back(block)
        self._order.remove(block)

    def pin(self, block: int) -> None:
        super().pin(block)
        self._reading.add(block)

    def mark_clean(self, block: int) -> None:
        super().mark_clean(block)
        self._reading.discard(block)

    def mark_sole(self, block: int) -> None:
        super().mark_sole(block)
        self._reading.discard(block)
