"""PartTimer: where an engine's time goes, part by part. It puts a clock around parts that were handed in, and no other.

What a part takes includes what it calls, so parts that lie within others are taken off theirs: the sum is the whole.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

from torch import nn

from minipaged.llm import LLM
from minipaged.model.packed_linear import PackedLinear


class PartTimer:
    """Seconds by part: matrices, head, attention, write_kv, norms, sampler, rest of the forward pass, bookkeeping.

    Args:
        llm: its engine is timed from now on, at the price of two looks at the clock for every call.
    """

    def __init__(self, llm: LLM) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open: list[list[float]] = []  # for each part that is running, what the parts within it have taken
        runner: Any = llm.engine.runner
        for module in llm.model.modules():
            if module is llm.model.lm_head:
                self._time("head", module, "forward")
            elif isinstance(module, (nn.Linear, PackedLinear)):
                self._time("matrices", module, "forward")
            elif isinstance(module, nn.LayerNorm):
                self._time("norms", module, "forward")
        runner.attention = SimpleNamespace(
            paged_attention=llm.backend.paged_attention, write_kv=llm.backend.write_kv
        )  # the backend itself cannot be written to
        self._time("attention", runner.attention, "paged_attention")
        self._time("write_kv", runner.attention, "write_kv")
        self._time("sampler", runner.sampler, "sample")
        self._time("rest of the forward pass", runner, "run")
        self._time("bookkeeping", llm.engine, "step")

    def _time(self, part: str, owner: object, name: str) -> None:
        """Put the clock around one method."""
        setattr(owner, name, self._timed(part, getattr(owner, name)))

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            within = [0.0]
            self._open.append(within)
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - began
                self._open.pop()
                self.seconds[part] += took - within[0]
                if self._open:
                    self._open[-1][0] += took

        return timed
