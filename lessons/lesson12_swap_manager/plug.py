"""Where lesson 12's exercise goes in the engine: the host pool's books, and what moves contents between the pools."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import ModuleType

from minipaged.parts import Parts


def plug(parts: Parts, exercise: ModuleType) -> Parts:
    """The engine with the learner's swap manager and tiers, in whatever memory it has."""
    return replace(parts, swap=exercise.SwapManager, memory=partial(parts.memory, tiers=exercise.Tiers))
