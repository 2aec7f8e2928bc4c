"""Where lesson 11's exercise goes in the engine: what the scheduler asks for slots."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from minipaged.parts import Parts


def plug(parts: Parts, exercise: ModuleType) -> Parts:
    """The engine with the learner's manager."""
    return replace(parts, memory=exercise.KVManager)
