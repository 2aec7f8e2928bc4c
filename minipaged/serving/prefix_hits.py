"""PrefixHits: how much of some traffic's prompts a cache of so many blocks finds, one request after the other.

The memory and the scheduler are the real ones; time plays no part, so each request is alone, in the order of the file.
What the prompts have in common, and what was forgotten between them, is all that counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.scripted_runner import ScriptedRunner
from minipaged.traffic import TimedRequest


@dataclass(frozen=True, slots=True)
class PrefixHits:
    """What a prefix cache found. Blocks are those that the prompts are cut into; the last one of each may be shorter.

    Args:
        num_requests: that were served.
        num_blocks: of all prompts.
        num_found: of them, those that were found, each behind all that come before it in its prompt.
        num_last: of those that were not, last blocks of prompts that were there to the end. The engine computes them
            all the same, since it needs the logits of the last token.
    """

    num_requests: int
    num_blocks: int
    num_found: int
    num_last: int

    @property
    def engine_rate(self) -> float:
        """What the engine did not compute ÷ all."""
        return self.num_found / self.num_blocks

    @property
    def rate(self) -> float:
        """What was there ÷ all: the definition by which a cache alone, with no model behind it, is judged."""
        return (self.num_found + self.num_last) / self.num_blocks


def prefix_hits(traffic: Iterable[TimedRequest], pool_blocks: int) -> PrefixHits:
    """Serve the prompts, each of whose tokens stands for a block, and count.

    Args:
        traffic: prompts of at least one token, such as `read_mooncake(path, tokens_per_hash=1)` has.
        pool_blocks: blocks of the cache.

    Raises:
        ValueError: there is no request, or one has more blocks than the pool.
    """
    memory = KVManager(BlockPool(pool_blocks), PrefixTree(block_size=1))
    scheduler = Scheduler(memory, max_batch_tokens=pool_blocks, max_sequences=1)
    no_limit = 2**62
    model = ModelConfig(no_limit, no_limit, 1, 1, 1, 1, 1, 1)
    engine = Engine(scheduler, ScriptedRunner(lambda sequence, context: 0), model)
    params = SamplingParams(max_tokens=1, temperature=0)  # the one token drawn is never fed back: it takes no block
    num_blocks = num_last = 0
    for request in traffic:
        prompt = request.prompt_token_ids
        num_blocks += len(prompt)
        num_last += _is_there(memory, prompt)
        engine.add_request(prompt, params)
        while engine.has_work:
            engine.step()
    if not num_blocks:
        raise ValueError("prefix hits: there is no request")
    return PrefixHits(engine.num_requests, num_blocks, memory.stats().tokens_from_device, num_last)


def _is_there(memory: KVManager, prompt: tuple[int, ...]) -> bool:
    """Whether the prompt is in the tree to its last block."""
    root = memory.tree.root(("salt", None))
    return len(memory.tree.walk(root, prompt, 0, len(prompt)).path) == len(prompt)
