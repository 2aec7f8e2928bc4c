"""Which kernels run here: each backend is called on a small case and compared with the reference.

Knows the backends by name (`minipaged_kernels.backends` says which there are) and nothing of how they work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

TOLERANCE = 2e-5  # float32, against the reference
_SLOW_SECONDS = 2.0  # a first call that takes longer has compiled something


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of a backend: right, wrong, or (None) not for this machine; and one line about it."""

    name: str
    right: bool | None
    note: str


def probe_kernels() -> list[Probe]:
    """Tries every backend. The first call of a compiled one may take seconds."""
    from minipaged_kernels import backends

    return [_probe(name, "cuda" if name == "triton" else "cpu") for name in reversed(backends.NAMES)]


def _probe(name: str, device: str) -> Probe:
    from minipaged_kernels import backends

    reason = backends.unavailable(name, device)
    if reason is not None:
        return Probe(name, None, reason)
    started_seconds = time.perf_counter()
    try:
        difference = difference_from_reference(backends.choose(name, device), device)
    except Exception as error:  # whatever it is: that it does not run here is the news
        return Probe(name, False, f"fails: {type(error).__name__}: {error}")
    if not difference <= TOLERANCE:  # also when it is NaN
        return Probe(name, False, f"wrong: {difference:.1e} away from the reference")
    seconds = time.perf_counter() - started_seconds
    note = f"runs on {device}, {difference:.0e} from the reference" if difference else f"runs on {device}"
    return Probe(name, True, note + (f"; compiled in {seconds:.0f} s" if seconds > _SLOW_SECONDS else ""))


def difference_from_reference(kernels: Any, device: str) -> float:
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
    kernels.write_kv(key, value, kv_layer, slots)
    reference.write_kv(key, value, expected_kv, slots)

    query = draw(3, 4, 16)  # (tokens, num_q_heads, head_dim)
    starts = torch.tensor([0, new[0], sum(new)], dtype=torch.int32, device=device)  # (sequences + 1)
    lengths = torch.tensor(contexts, dtype=torch.int32, device=device)  # (sequences)
    out = kernels.paged_attention(query, kv_layer, tables, starts, lengths, 0.25)
    expected = reference.paged_attention(query, expected_kv, tables, starts, lengths, 0.25)
    return max(float((out - expected).abs().max()), float((kv_layer - expected_kv).abs().max()))
