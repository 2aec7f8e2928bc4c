"""The engine's own scheduler under the exercise's name, so that the same check can be put to it."""

from minipaged.scheduler import Scheduler

__all__ = ["Scheduler"]
