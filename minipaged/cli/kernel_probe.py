"""Which kernels run here: each backend is imported, called on a small case, and compared with the reference.

Knows the backends by their modules' names and nothing of how they work; one that this version does not have is passed
over, so a new backend is one more line of `BACKENDS`.
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minipaged.llm import LLM

TOLERANCE = 2e-5  # float32, against the reference


@dataclass(frozen=True, slots=True)
class Backend:
    """Where a backend lives and what it runs on."""

    name: str
    modules: tuple[str, ...]  # of minipaged_kernels; together they have the kernels
    device: str
    what: str


BACKENDS = (
    Backend("reference", ("reference",), "cpu", "plain torch, any device"),
    Backend("cpu", ("cpu",), "cpu", "Numba, every core"),
    Backend("triton", ("triton_attention", "triton_cache"), "cuda", "Triton, CUDA"),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of a backend: `runs`, or else why not."""

    backend: Backend
    runs: bool
    note: str
    missing: str | None = None  # the package that is not installed


def probe_kernels() -> list[Probe]:
    """Tries every backend of this version. The first call of a compiled one may take seconds."""
    return [
        _probe(backend)
        for backend in BACKENDS
        if all(importlib.util.find_spec(f"minipaged_kernels.{module}") for module in backend.modules)
    ]


def backend_in_use(llm: LLM) -> str:
    """The name of the backend that an LLM has taken."""
    module = getattr(llm.engine.runner, "attention", None)
    path = getattr(module, "__name__", type(module).__name__)
    return next((b.name for b in BACKENDS if path.rpartition(".")[2] in b.modules), path)


def _probe(backend: Backend) -> Probe:
    import torch

    if backend.device == "cuda" and not torch.cuda.is_available():
        return Probe(backend, False, "needs a CUDA device")
    started_seconds = time.perf_counter()
    try:
        kernels: dict[str, Any] = {}
        for module in backend.modules:
            kernels |= vars(import_module(f"minipaged_kernels.{module}"))
        difference = _difference_from_reference(kernels, backend.device)
    except ModuleNotFoundError as error:
        return Probe(backend, False, f"{error.name} is not installed", missing=error.name)
    except Exception as error:  # whatever it is: that it does not run here is the news
        return Probe(backend, False, f"fails: {type(error).__name__}: {error}")
    if not difference <= TOLERANCE:  # also when it is NaN
        return Probe(backend, False, f"wrong: {difference:.1e} away from the reference")
    seconds = time.perf_counter() - started_seconds
    compiled = f"; compiled in {seconds:.0f} s" if seconds > 2 else ""
    return Probe(backend, True, backend.what + compiled)


def _difference_from_reference(kernels: dict[str, Any], device: str) -> float:
    """Writes K and V of two sequences into scattered blocks, attends, and returns the largest difference."""
    import torch
    from minipaged_kernels import reference

    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator).to(device)

    contexts, new = [9, 6], [2, 1]  # tokens of each sequence, and how many of them ask
    tables = torch.tensor([[5, 0, 3], [2, 4, 0]], dtype=torch.int32, device=device)  # (sequences, max_blocks)
    kv_layer = draw(6, 2, 2, 4, 16)  # (num_blocks, 2, num_kv_heads, block_size, head_dim)
    expected_kv = kv_layer.clone()
    slots = torch.tensor([3 * 4, 5 * 4 + 1], device=device)  # (tokens)
    key, value = draw(2, 2, 16), draw(2, 2, 16)  # each (tokens, num_kv_heads, head_dim)
    kernels["write_kv"](key, value, kv_layer, slots)
    reference.write_kv(key, value, expected_kv, slots)

    query = draw(3, 4, 16)  # (tokens, num_q_heads, head_dim)
    starts = torch.tensor([0, new[0], sum(new)], dtype=torch.int32, device=device)  # (sequences + 1)
    lengths = torch.tensor(contexts, dtype=torch.int32, device=device)  # (sequences)
    out = kernels["paged_attention"](query, kv_layer, tables, starts, lengths, 0.25)
    expected = reference.paged_attention(query, expected_kv, tables, starts, lengths, 0.25)
    return max(float((out - expected).abs().max()), float((kv_layer - expected_kv).abs().max()))
