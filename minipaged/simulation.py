"""SimulatedRunner: the runner's door without a model behind it.

The simulated cache stores, in each slot, the token whose K and V would lie there. A chunk writes its tokens, reads its
whole context back through its block table, and draws a token that depends on all of it: a block that is lost, shared
wrongly or overwritten too early gives a wrong answer, to the token, in milliseconds and without a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

from minipaged.plan import Chunk, CopyBlock, Draw, MemoryOp, Poison, StepPlan, StepResult, SwapIn, SwapOut


class StaleRead(AssertionError):
    """A sequence's context has a slot that holds nothing."""


class SimulatedRunner:
    """Answers with tokens that are a function of the context found in the cache.

    Args:
        num_blocks: blocks of the simulated device pool.
        block_size: token slots in a block.
        vocab_size: drawn tokens are in `range(vocab_size)`.
        num_host_blocks: blocks of the simulated host pool.
    """

    def __init__(self, num_blocks: int, block_size: int, vocab_size: int, num_host_blocks: int = 0) -> None:
        self.block_size = block_size
        self.vocab_size = vocab_size
        self._device: list[list[int | None]] = [[None] * block_size for _ in range(num_blocks)]
        self._host: list[list[int | None]] = [[None] * block_size for _ in range(num_host_blocks)]

    def run(self, plan: StepPlan) -> StepResult:
        """Carry the plan out.

        Args:
            plan: of a step; its `num_executed_ops` is counted up.

        Raises:
            StaleRead: a context that has a hole.
            IndexError: a block table that is too short for its chunk.
        """
        for operation in plan.memory_ops:
            self._apply(operation)
            plan.num_executed_ops += 1
        # As in a model, every layer writes before it attends: first all chunks write, then all read.
        for chunk in plan.chunks:
            for offset, token_id in enumerate(chunk.token_ids):
                logical, slot = divmod(chunk.start + offset, self.block_size)
                self._device[chunk.block_table[logical]][slot] = token_id
        return StepResult([self._draw(chunk) for chunk in plan.chunks])

    def context(self, block_table: Items[int], num_tokens: int) -> list[int]:
        """The first `num_tokens` tokens that a block table reads back.

        Args:
            block_table: physical blocks, logical order.
            num_tokens: tokens of the context.

        Raises:
            StaleRead: one of the slots holds nothing.
        """
        found: list[int] = []
        for position in range(num_tokens):
            logical, slot = divmod(position, self.block_size)
            token_id = self._device[block_table[logical]][slot] if logical < len(block_table) else None
            if token_id is None:
                raise StaleRead(f"position {position} of {num_tokens}: nothing is stored there; table {block_table}")
            found.append(token_id)
        return found

    def _draw(self, chunk: Chunk) -> tuple[Draw, ...]:
        context = self.context(chunk.block_table, chunk.start + len(chunk.token_ids))
        return tuple(
            Draw(next_token(context, self.vocab_size, chunk.sampling.seed, chunk.sampling.index + i), 0.0)
            for i in range(chunk.draws)
        )

    def _apply(self, operation: MemoryOp) -> None:
        match operation:
            case CopyBlock(source, destination):
                self._device[destination] = list(self._device[source])
            case SwapOut(device, host):
                self._host[host] = list(self._device[device])
            case SwapIn(host, device):
                self._device[device] = list(self._host[host])
            case Poison(block):
                self._device[block] = [None] * self.block_size


def next_token(context: Items[int], vocab_size: int, seed: int = 0, index: int = 0) -> int:
    """The token that a simulated model draws after `context`: a hash of all of it (FNV-1a), seed and index included."""
    state = 0xCBF29CE484222325
    for value in (seed, index, *context):
        state = ((state ^ (value + 1)) * 0x100000001B3) % 2**64
    return (state >> 20) % vocab_size


def simulated_answer(prompt: Items[int], num_tokens: int, vocab_size: int, seed: int = 0, index: int = 0) -> list[int]:
    """What `SimulatedRunner` must answer, without any cache: the oracle of the bookkeeping's tests.

    Args:
        prompt: token ids.
        num_tokens: tokens of the answer.
        vocab_size: answers are in `range(vocab_size)`.
        seed: the request's.
        index: which of the request's answers it is.
    """
    tokens = list(prompt)
    for _ in range(num_tokens):
        tokens.append(next_token(tokens, vocab_size, seed, index))
    return tokens[len(prompt) :]
