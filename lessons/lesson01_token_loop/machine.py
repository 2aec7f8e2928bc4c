"""What this machine can do at best: operations per second, bytes per second. Measured, so it differs from run to run.

The best of a few tries counts, for whoever shares the machine takes time and never gives any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
    return Machine(flops / best_seconds(lambda: a @ a, device), many.nbytes / best_seconds(many.sum, device))


def best_seconds(call: Callable[[], Any], device: str, tries: int = 7) -> float:
    """The quickest of some calls, after one that warms up."""
    times = []
    for _ in range(tries + 1):
        began = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:])
