"""Policy: how a service is run: which memory, which scheduler, which budgets.

Names what there is and puts nothing together but the memory. It knows nothing of traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.order import Order, first_come_first_served
from minipaged.scheduler import Memory, Scheduler


@dataclass(frozen=True, slots=True)
class Room:
    """What a memory is made of.

    Args:
        num_slots: token slots of the device.
        num_host_slots: token slots of the host.
        block_size: token slots in a block, where there are blocks.
        context: the model's, in tokens.
        final_slots: slots that each request will have filled in the end, by its id, as long as it is there. Only an
            oracle looks at it.
    """

    num_slots: int
    num_host_slots: int
    block_size: int
    context: int
    final_slots: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to serve.

    Args:
        name: for a reader.
        memory: makes the memory.
        scheduler: makes the scheduler, as `Scheduler` is made.
        order: who goes first.
        max_chunk_tokens: tokens of one sequence in a step at most; None for no limit but the batch's.
        watermark: share of the slots that an admission leaves free.
    """

    name: str
    memory: Callable[[Room], Memory]
    scheduler: Callable[..., Scheduler] = Scheduler
    order: Order = first_come_first_served
    max_chunk_tokens: int | None = None
    watermark: float = 0.01


def paged_memory(room: Room, *, share_prefixes: bool = False, swap: bool = False) -> KVManager:
    """The engine's own memory: blocks, a prefix tree and, with `swap`, the host's room."""
    host_blocks = room.num_host_slots // room.block_size if swap else 0
    return KVManager(
        BlockPool(room.num_slots // room.block_size),
        PrefixTree(room.block_size),
        SwapManager(host_blocks) if host_blocks else None,
        share_prefixes=share_prefixes,
    )


PAGED = Policy("paged", paged_memory)
PAGED_SHARING = Policy("paged-sharing", lambda room: paged_memory(room, share_prefixes=True))
PAGED_SWAP = Policy("paged-swap", lambda room: paged_memory(room, share_prefixes=True, swap=True))

POLICIES = {policy.name: policy for policy in (PAGED, PAGED_SHARING, PAGED_SWAP)}
