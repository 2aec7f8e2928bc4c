"""TorchRunner: carries out a StepPlan on real tensors. Memory operations, one forward pass, draws.

Everything that the layers need in common is built once per step. Deliberately does not know why a chunk is in the plan,
who owns a block or what becomes of the drawn tokens: it imports neither the scheduler nor the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from minipaged_kernels import reference

from minipaged.model.gpt import GPT, Attend
from minipaged.model.kv_cache import KVCache
from minipaged.model.sampler import Sampler
from minipaged.plan import Chunk, StepPlan, StepResult


class AttentionBackend(Protocol):
    """What a module of `minipaged_kernels` offers; `reference` says what each does."""

    @property
    def paged_attention(self) -> Callable[..., torch.Tensor]:
        """Causal attention of the new tokens over their contexts; see `minipaged_kernels.reference.paged_attention`."""
        ...

    @property
    def write_kv(self) -> Callable[..., Any]:
        """Writes K and V into their slots; see `minipaged_kernels.reference.write_kv`."""
        ...


@dataclass(frozen=True, slots=True)
class StepInputs:
    """A plan's chunks as tensors. Sequence i's rows are `query_starts[i]:query_starts[i + 1]`.

    Args:
        token_ids: (tokens) int64.
        positions: (tokens) int64, each token's place in its own sequence.
        slots: (tokens) int64: where each token's K and V go.
        block_tables: (sequences, max_blocks) int32, padded with 0.
        query_starts: (sequences + 1) int32.
        context_lens: (sequences) int32, this step's tokens included.
    """

    token_ids: torch.Tensor  # (tokens)
    positions: torch.Tensor  # (tokens)
    slots: torch.Tensor  # (tokens)
    block_tables: torch.Tensor  # (sequences, max_blocks)
    query_starts: torch.Tensor  # (sequences + 1)
    context_lens: torch.Tensor  # (sequences)

    @classmethod
    def build(cls, chunks: Sequence[Chunk], block_size: int, device: torch.device) -> StepInputs:
        """Lays the chunks out one behind the other.

        Args:
            chunks: of a plan, at least one.
            block_size: token slots in a block.
            device: where the tensors go.

        Raises:
            ValueError: a chunk without tokens, or whose table does not cover its context.
        """
        lengths = np.array([len(chunk.token_ids) for chunk in chunks], dtype=np.int64)  # (sequences)
        starts = np.array([chunk.start for chunk in chunks], dtype=np.int64)  # (sequences)
        contexts = starts + lengths  # (sequences)
        tables = np.zeros((len(chunks), max(len(chunk.block_table) for chunk in chunks)), dtype=np.int32)
        for row, chunk in enumerate(chunks):
            if not chunk.token_ids:
                raise ValueError(f"TorchRunner: the chunk of sequence {chunk.sequence} has no tokens")
            if len(chunk.block_table) * block_size < contexts[row]:
                raise ValueError(
                    f"TorchRunner: sequence {chunk.sequence} has {len(chunk.block_table)} blocks of {block_size} slots "
                    f"for a context of {contexts[row]} tokens"
                )
            tables[row, : len(chunk.block_table)] = chunk.block_table

        query_starts = np.zeros(len(chunks) + 1, dtype=np.int32)  # (sequences + 1)
        np.cumsum(lengths, out=query_starts[1:])
        owner = np.repeat(np.arange(len(chunks)), lengths)  # (tokens): the row of each token's sequence
        positions = np.arange(len(owner)) - query_starts[owner] + starts[owner]  # (tokens)
        physical = tables[owner, positions // block_size].astype(np.int64)  # (tokens)
        slots = physical * block_size + positions % block_size  # (tokens)
        token_ids = np.concatenate([np.asarray(chunk.token_ids, dtype=np.int64) for chunk in chunks])  # (tokens)
        arrays = (token_ids, positions, slots, tables, query_starts, contexts.astype(np.int32))
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))


class TorchRunner:
    """Runs plans on a model and its KV cache.

    Args:
        model: the network.
        kv_cache: its blocks; same dtype and device as the model.
        sampler: draws the tokens.
        attention: what has `paged_attention` and `write_kv`: a `minipaged_kernels.backends.Backend`, or the reference.
        on_logits: called in each step that draws, with the plan and the logits (rows, vocab) of its drawing chunks, one
            row each, in the plan's order. For tests and lessons, which must not change them.
        inputs: makes the step's tensors of its chunks, the block size and the device.
    """

    def __init__(
        self,
        model: GPT,
        kv_cache: KVCache,
        sampler: Sampler | None = None,
        attention: AttentionBackend = reference,
        on_logits: Callable[[StepPlan, torch.Tensor], None] | None = None,
        inputs: Callable[[Sequence[Chunk], int, torch.device], StepInputs] = StepInputs.build,
    ) -> None:
        self.model = model
        self.kv_cache = kv_cache
        self.sampler = sampler or Sampler()
        self.attention = attention
        self.on_logits = on_logits
        self._inputs = inputs

    def run(self, plan: StepPlan) -> StepResult:
        """Executes the memory operations in order, computes all chunks in one forward pass, draws.

        A plan without chunks only has its memory operations executed.

        Args:
            plan: of a step; its `num_executed_ops` is set.

        Returns:
            For each chunk, in order, `chunk.draws` draws from its last row: draw i is noise for `sampling.index + i`,
            at position `start + len(token_ids)`.

        Raises:
            ValueError: a chunk's table does not cover its context.
            IndexError: a memory operation names a block that is not there.
            FloatingPointError: the logits are not numbers.
        """
        with torch.inference_mode():
            self.kv_cache.num_applied = 0
            try:
                self.kv_cache.apply(plan.memory_ops)
            finally:
                plan.num_executed_ops = self.kv_cache.num_applied
            if not plan.chunks:
                return StepResult(draws=[])
            inputs = self._inputs(plan.chunks, self.kv_cache.block_size, self.model.device)
            hidden = self.model(inputs.token_ids, inputs.positions, self._attend(inputs))  # (tokens, hidden)
            return self._draw(plan, inputs, hidden)

    def _attend(self, inputs: StepInputs) -> Attend:
        """Attention for this step: first the new K and V go into their slots, then every row reads its context."""
        scale = self.model.config.head_dim**-0.5

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            kv_layer = self.kv_cache.layer(layer)  # (num_blocks, 2, num_kv_heads, block_size, head_dim)
            self.attention.write_kv(key, value, kv_layer, inputs.slots)
            return self.attention.paged_attention(
                query, kv_layer, inputs.block_tables, inputs.query_starts, inputs.context_lens, scale
            )  # (tokens, num_heads, head_dim)

        return attend

    def _draw(self, plan: StepPlan, inputs: StepInputs, hidden: torch.Tensor) -> StepResult:
        drawing = [i for i, chunk in enumerate(plan.chunks) if chunk.draws > 0]
        if not drawing:
            return StepResult(draws=[() for _ in plan.chunks])
        last_rows = inputs.query_starts[1:][drawing].long() - 1  # (drawing)
        logits = self.model.logits(hidden[last_rows])  # (drawing, vocab)
        if self.on_logits is not None:
            self.on_logits(plan, logits)

        rows, samplings, positions = [], [], []  # one entry per draw
        for row, chunk in enumerate(plan.chunks[i] for i in drawing):
            for i in range(chunk.draws):
                rows.append(row)
                samplings.append(replace(chunk.sampling, index=chunk.sampling.index + i) if i else chunk.sampling)
                positions.append(chunk.start + len(chunk.token_ids))
        if len(rows) > len(drawing):
            logits = logits[torch.tensor(rows, device=logits.device)]  # (draws, vocab)
        drawn = iter(self.sampler.sample(logits, samplings, positions))
        return StepResult(draws=[tuple(next(drawn) for _ in range(chunk.draws)) for chunk in plan.chunks])
