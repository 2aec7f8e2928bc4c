"""Allocator: what both ways of giving out token slots can do, so that the same story can be told to either.

It knows names and token counts: no tokens, no tensors.
"""

from __future__ import annotations

from typing import Protocol


class Allocator(Protocol):
    """Gives token slots to requests by name. A refusal (False) changes nothing.

    `slot(name, position)` says where a token's K and V lie; positions count from 0.
    """

    num_slots: int

    @property
    def free_slots(self) -> int: ...
    @property
    def live_slots(self) -> int: ...
    def admit(self, name: str, num_tokens: int) -> bool: ...
    def append(self, name: str) -> bool: ...
    def release(self, name: str) -> None: ...
    def slot(self, name: str, position: int) -> int: ...
