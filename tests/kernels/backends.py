"""The backends under test. The problems that they are given are in `minipaged/cli/kernel_problems.py`."""

from __future__ import annotations

import importlib
import importlib.util
from types import SimpleNamespace

import pytest
import torch

from minipaged.cli.kernel_problems import Problem

SHORT_MIXES = (  # for the interpreter, which takes a millisecond for every program and tile
    ((1, 70), (5, 18)),
    ((1, 31), (1, 32), (1, 33)),
    ((17, 17), (2, 35)),
)


def load(name: str) -> SimpleNamespace:
    """The three functions of a backend; `device` is where its tensors lie."""
    if name == "triton":
        attention = importlib.import_module("minipaged_kernels.triton_attention")
        cache = importlib.import_module("minipaged_kernels.triton_cache")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        functions = (attention.paged_attention, cache.write_kv, cache.copy_blocks)
    else:
        module = importlib.import_module(f"minipaged_kernels.{name}")
        device, functions = "cpu", (module.paged_attention, module.write_kv, module.copy_blocks)
    names = ("paged_attention", "write_kv", "copy_blocks")
    return SimpleNamespace(name=name, device=device, **dict(zip(names, functions, strict=True)))


def solve(problem: Problem, backend: SimpleNamespace) -> torch.Tensor:
    """A problem's answer by a backend."""
    return problem.solve(backend.paged_attention, backend.device)


no_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
BACKENDS = [
    "reference",
    "cpu",
    # On a GPU where there is one (and then `-m gpu` picks it), else in the interpreter.
    pytest.param("triton", marks=[no_triton] + ([pytest.mark.gpu] if torch.cuda.is_available() else [])),
]
