"""StepPlan: all that passes from the bookkeeping to the tensors. StepResult: all that comes back.

Plain slotted data. Nothing here holds a tensor, nothing here holds a request: block tables are copied in, so that a
plan stays true when the books move on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """What the sampler must know of one sequence.

    The noise of a draw is a hash of (seed, index, position of the drawn token), so it depends on nothing else.

    Args:
        temperature: 0 is greedy.
        top_k: draw among so many most probable tokens; None among all.
        top_p: draw among the fewest most probable tokens whose probabilities sum to at least this.
        num_top_logprobs: most probable tokens to report beside the chosen one.
        seed: the request's.
        index: the sequence's index within its request.
    """

    temperature: float
    top_k: int | None
    top_p: float
    num_top_logprobs: int
    seed: int
    index: int


@dataclass(slots=True)
class Chunk:
    """The run of one sequence's tokens that is computed in this step. A decode is a chunk of one.

    `token_ids[j]` sits at position `start + j`, and its K and V go to slot
    `block_table[(start + j) // block_size] * block_size + (start + j) % block_size`.
    The context after the step is `start + len(token_ids)` tokens.

    Args:
        sequence: the sequence's id.
        start: position of the first token.
        token_ids: at least one.
        block_table: physical blocks, logical order; covers the context after the step.
        draws: tokens to draw from the last row: 0 in mid-prompt, 1 behind the last token, n when n answers part.
        sampling: how to draw.
    """

    sequence: int
    start: int
    token_ids: list[int]
    block_table: tuple[int, ...]
    draws: int
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class CopyBlock:
    """Copy a whole device block, all layers, to another device block.

    Args:
        source: the device block that is read.
        destination: the device block that is written.
    """

    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Copy a device block to a host block.

    Args:
        device: the device block that is read.
        host: the host block that is written.
    """

    device: int
    host: int


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Copy a host block to a device block.

    Args:
        host: the host block that is read.
        device: the device block that is written.
    """

    host: int
    device: int


@dataclass(frozen=True, slots=True)
class Poison:
    """Fill a freed device block with NaN, in debug mode, so that a stale read shows.

    Args:
        block: the device block.
    """

    block: int


MemoryOp = CopyBlock | SwapOut | SwapIn | Poison


@dataclass(slots=True)
class StepPlan:
    """One step: first the memory operations in their order, then one forward pass over all chunks.

    Args:
        step: its number, from 0.
        chunks: what is computed; none when there is no work.
        memory_ops: copies and swaps, in the order in which they must be done.
        num_executed_ops: the runner's to count up: should the step fail, the rest of them is still to be done.
    """

    step: int
    chunks: list[Chunk]
    memory_ops: list[MemoryOp]
    num_executed_ops: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens computed in this step, over all chunks."""
        return sum(len(chunk.token_ids) for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn token and its log-probability under the model, before temperature, top-k and top-p.

    Args:
        token_id: the token.
        logprob: its log-probability, at most 0.
        top_logprobs: (token id, log-probability) of the most probable tokens, the most probable first.
    """

    token_id: int
    logprob: float
    top_logprobs: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class StepResult:
    """All that comes back from a step.

    Args:
        draws: for each chunk of the plan, in its order, the tokens drawn from its last row: `chunk.draws` of them.
    """

    draws: list[tuple[Draw, ...]]
