"""Where lesson 5's exercise goes in the engine: the device pool, and every sequence's table."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from minipaged.parts import Parts


def plug(parts: Parts, exercise: ModuleType) -> Parts:
    """The engine with the learner's pool and tables."""
    return replace(parts, pool=exercise.BlockPool, table=exercise.BlockTable)
