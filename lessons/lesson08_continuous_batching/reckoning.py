"""How many steps some answers take, reckoned from their lengths alone. The step that computes a prompt draws the first
token of its answer, so an answer of 12 tokens holds its place for 12 steps."""

from __future__ import annotations

from collections.abc import Sequence


def static_steps(lengths: Sequence[int], places: int) -> int:
    """Batch after batch, each as long as its longest answer."""
    return sum(max(lengths[first : first + places]) for first in range(0, len(lengths), places))


def continuous_steps(lengths: Sequence[int], places: int) -> int:
    """Each answer takes the place that is free first; the last one to end ends it all."""
    free_from = [0] * places
    for length in lengths:
        place = free_from.index(min(free_from))
        free_from[place] += length
    return max(free_from)


def least_steps(lengths: Sequence[int], places: int) -> int:
    """Nobody can do it in less: all places busy all the time, and no answer shorter than it is."""
    return max(-(-sum(lengths) // places), max(lengths))


def idle_places(lengths: Sequence[int], places: int, steps: int) -> int:
    """Places × steps, less those in which somebody wrote a token."""
    return places * steps - sum(lengths)
