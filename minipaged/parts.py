"""Parts: what an LLM is put together of. Each can be replaced by one of your own, by handing it in.

    class CountingPool(BlockPool):
        def allocate(self) -> int:
            print("one more")
            return super().allocate()

    LLM("tiny-gpt", parts=Parts(pool=CountingPool))

Only names them: what a part must be able to do, its own module says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.block_table import BlockTable
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.order import Order, first_come_first_served
from minipaged.plan import Chunk
from minipaged.runner import AttentionBackend, StepInputs
from minipaged.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Parts:
    """Makers of parts of an `LLM`, each called as our own is. What is left out is ours.

    Args:
        pool: of a number of blocks, the device pool.
        table: of a block size, one sequence's block table.
        tree: of a block size, the prefix tree.
        swap: of a number of host blocks, the host pool's books.
        memory: of a pool, a tree and a swap manager or None, what the scheduler asks for slots.
        scheduler: of a memory and the budgets, what decides each step.
        order: the scheduler's policy.
        inputs: of chunks, block size and device, the step's tensors.
        attention: the kernels: a `Backend`, a module, or whatever has `paged_attention` and `write_kv` (and
            `copy_blocks`, if it likes); None leaves the choice to `EngineConfig.attention`.

    Raises:
        ValueError: `attention` lacks one of the two; a file's path, say.
    """

    pool: Callable[[int], BlockPool] = BlockPool
    table: Callable[[int], BlockTable] = BlockTable
    tree: Callable[[int], PrefixTree] = PrefixTree
    swap: Callable[[int], SwapManager] = SwapManager
    memory: Callable[..., KVManager] = KVManager
    scheduler: Callable[..., Scheduler] = Scheduler
    order: Order = first_come_first_served
    inputs: Callable[[Sequence[Chunk], int, torch.device], StepInputs] = StepInputs.build
    attention: AttentionBackend | None = None

    def __post_init__(self) -> None:
        for kernel in ("paged_attention", "write_kv"):
            if self.attention is not None and not callable(getattr(self.attention, kernel, None)):
                raise ValueError(
                    f"Parts: attention is {self.attention!r}, without {kernel}; it must be a Backend "
                    "(backends.from_file makes one of a file), a module, or an object with paged_attention and write_kv"
                )
