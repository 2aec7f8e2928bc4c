"""What this machine can do at best: operations per second, bytes per second. Measured, so it differs from run to run.

And the stopwatch of all lessons, `shortest_seconds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Machine:
    """Two limits. No step can be faster than either of them allows.

    Args:
        flops_per_second: of a product of two large float32 matrices.
        bytes_per_second: at which a large tensor is read.
    """

    flops_per_second: float
    bytes_per_second: float

    def compute_seconds(self, flops: int) -> float:
        """Time that the arithmetic takes at least."""
        return flops / self.flops_per_second

    def memory_seconds(self, num_bytes: int) -> float:
        """Time that the bytes take at least."""
        return num_bytes / self.bytes_per_second

    def limit(self, flops: int, num_bytes: int) -> str:
        """Which of the two a step meets first."""
        return "arithmetic" if self.compute_seconds(flops) > self.memory_seconds(num_bytes) else "memory"


def measure_machine(device: str = "cpu", small: bool = False) -> Machine:
    """Multiply, and read."""
    side = 1024 if device == "cpu" else 8192
    a = torch.randn(side, side, device=device)
    flops = 2 * side**3  # side² sums of side products
    many = torch.ones((32 if small else 64) * 2**20, device=device)  # far more than any cache holds
    multiply_seconds, read_seconds = shortest_seconds([lambda: a @ a, many.sum], device, rounds=7)
    return Machine(flops / multiply_seconds, many.nbytes / read_seconds)


def shortest_seconds(calls: Sequence[Callable[[], Any]], device: str, rounds: int = 5) -> list[float]:
    """Each call's shortest time in some rounds, after one that warms up.

    In rounds, since a machine that others use as well has fast and slow seconds; and the shortest, not the median,
    since others can only make a call longer.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            if device == "cuda":
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - began)
    return [min(taken[1:]) for taken in times]
