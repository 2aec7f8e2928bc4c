"""Where lesson 10's exercise goes in the engine: the prefix tree."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from minipaged.parts import Parts


def plug(parts: Parts, exercise: ModuleType) -> Parts:
    """The engine with the learner's tree."""
    return replace(parts, tree=exercise.PrefixTree)
