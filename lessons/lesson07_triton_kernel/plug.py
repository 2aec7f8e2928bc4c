"""Where lesson 7's exercise goes in the engine: the attention of decodes. Prompts stay with another backend."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
from minipaged_kernels import backends

from lessons.lesson07_triton_kernel.language import INTERPRETED, MISSING, device
from lessons.lesson07_triton_kernel.request import check_decode
from minipaged.parts import Parts
from minipaged.runner import AttentionBackend

SPLITS = 2  # so that both the tile loop and the merge are used
#: Rows (a token in one layer) that the interpreter computes before the other backend goes on: it is slow.
INTERPRETED_ROWS = 32


class TritonDecode:
    """Attention of which the decodes are an exercise's: `paged_attention` and `write_kv`, as the reference's.

    Args:
        exercise: has `tile_loop` and `merge_splits`.
        rest: what computes everything else; None takes the best backend for the device.
        rows: how many rows are the exercise's; None for all.
    """

    def __init__(self, exercise: ModuleType, rest: AttentionBackend | None = None, rows: int | None = None) -> None:
        self._exercise = exercise
        self._rest = rest
        self._rows_left = rows
        self.num_rows = 0  # computed by the exercise so far

    def paged_attention(
        self,
        query: torch.Tensor,
        kv_layer: torch.Tensor,
        block_tables: torch.Tensor,
        query_starts: torch.Tensor,
        context_lens: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """See `reference.paged_attention`."""
        from lessons.lesson07_triton_kernel.decode_kernel import decode_attention

        decodes = (query_starts.diff() == 1).nonzero()[:, 0]  # sequences with one new token
        rows = query_starts[decodes].long()  # where theirs is
        if not len(rows) or not self._may_have(len(rows)) or not _suits(query, kv_layer):
            return self._other(query).paged_attention(
                query, kv_layer, block_tables, query_starts, context_lens, scale
            )  # fmt: skip
        own = decode_attention(
            query[rows], kv_layer, block_tables[decodes], context_lens[decodes], scale, splits=SPLITS,
            tile_loop=self._exercise.tile_loop, merge_splits=self._exercise.merge_splits,
        )  # fmt: skip
        self.num_rows += len(rows)
        if len(rows) == len(query):
            return own
        out = self._other(query).paged_attention(query, kv_layer, block_tables, query_starts, context_lens, scale)
        out[rows] = own
        return out

    def write_kv(self, key: torch.Tensor, value: torch.Tensor, kv_layer: torch.Tensor, slots: torch.Tensor) -> Any:
        """See `reference.write_kv`."""
        return self._other(key).write_kv(key, value, kv_layer, slots)

    def _may_have(self, rows: int) -> bool:
        return self._rows_left is None or self.num_rows + rows <= self._rows_left

    def _other(self, tensor: torch.Tensor) -> AttentionBackend:
        if self._rest is None:
            self._rest = backends.choose("auto", tensor.device.type)
        return self._rest


def plug(parts: Parts, exercise: ModuleType) -> Parts:
    """The engine with the exercise's kernel for its decodes; as it was, where there is no Triton."""
    if MISSING:
        return parts
    rows = INTERPRETED_ROWS if INTERPRETED else None
    return replace(parts, attention=TritonDecode(exercise, parts.attention, rows))


def _suits(query: torch.Tensor, kv_layer: torch.Tensor) -> bool:
    """Whether the lesson's kernel takes such numbers and sizes, where they lie."""
    if query.device.type != device():
        return False
    nobody = torch.empty((0, 0), dtype=torch.int32)
    try:
        check_decode(query[:0], kv_layer, nobody, nobody[:, :0].flatten())
    except ValueError:
        return False
    return True
