"""A whole engine with a few blocks and no model: what each block holds is its tokens, and they are read back.

`SimulatedRunner` answers with tokens that depend on the whole context as it is found in the blocks, so a copy that was
lost, or brought back to the wrong place, gives a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.kv_manager import KVManager
from minipaged.parts import Parts
from minipaged.request import Request
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, simulated_answer

VOCABULARY = 1000
POSITIONS = 1000
TOKEN_BYTES = 4096  # K and V of one token in tiny-gpt: 4 layers * 2 * 4 heads * 32 * 4 bytes


@dataclass(frozen=True, slots=True)
class SmallEngine:
    """The engine, and the memory that it runs on."""

    engine: Engine
    memory: KVManager

    @classmethod
    def of(
        cls, parts: Parts, num_blocks: int, block_size: int, host_blocks: int = 0, *, share_prefixes: bool = True
    ) -> SmallEngine:
        """Put it together of parts, as `LLM` does."""
        memory = parts.memory(
            parts.pool(num_blocks),
            parts.tree(block_size),
            parts.swap(host_blocks) if host_blocks else None,
            table=parts.table,
            share_prefixes=share_prefixes,
            block_bytes=block_size * TOKEN_BYTES,
            poison_freed=True,
        )
        scheduler: Scheduler = parts.scheduler(memory, max_positions=POSITIONS)
        runner = SimulatedRunner(num_blocks, block_size, VOCABULARY, host_blocks)
        return cls(Engine(scheduler, runner, ModelConfig(VOCABULARY, POSITIONS, 1, 1, 1, 1, 1, 1)), memory)

    def add(self, prompt: list[int], max_tokens: int) -> Request:
        """Queue a prompt."""
        return self.engine.add_request(prompt, SamplingParams(max_tokens=max_tokens))

    def run(self) -> int:
        """Step until nothing is left to do; the books are checked each time. Returns the number of steps."""
        steps = 0
        while self.engine.has_work:
            self.engine.step()
            self.memory.check()
            steps += 1
        return steps


def is_right(request: Request) -> bool:
    """Whether its answer is what a run without any cache gives."""
    answer = request.sequences[0].output_token_ids
    return request.error is None and answer == simulated_answer(
        request.prompt_token_ids, len(answer), VOCABULARY, request.seed
    )
