"""Policy: how a service is run: which memory, which scheduler, which budgets.

Names what there is and puts nothing together but the memory. It knows nothing of traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from minipaged.memory.block_pool import BlockPool
from minipaged.memory.contiguous.buddy_cache import BuddyCache
from minipaged.memory.contiguous.reserving_cache import ReservingCache, as_recorded, prompt_and_maximum
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.order import Order, first_come_first_served
from minipaged.prefill_first import PrefillFirst
from minipaged.request import Sequence
from minipaged.scheduler import Memory, Scheduler
from minipaged.static_batches import StaticBatches


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


class ServedMemory(Memory, Protocol):
    """What the scheduler asks of memory, and the slots in a block of its tables."""

    @property
    def block_size(self) -> int:
        """Token slots in a block of its tables."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to serve.

    Args:
        name: for the command line, and for a reader.
        memory: makes the memory.
        summary: one line.
        scheduler: makes the scheduler, as `Scheduler` is made.
        max_batch_tokens: tokens in a step at most; None takes the service's.
        max_chunk_tokens: tokens of one sequence in a step at most; None for no limit but the batch's.
        watermark: share of the slots that an admission leaves free.
        order: who goes first.
    """

    name: str
    memory: Callable[[Room], ServedMemory]
    summary: str = ""
    scheduler: Callable[..., Scheduler] = Scheduler
    max_batch_tokens: int | None = None
    max_chunk_tokens: int | None = None
    watermark: float = 0.01
    order: Order = first_come_first_served


def paged_memory(room: Room, *, share_prefixes: bool = False, swap: bool = False) -> KVManager:
    """The engine's own memory: blocks, a prefix tree and, with `swap`, the host's room."""
    host_blocks = room.num_host_slots // room.block_size if swap else 0
    return KVManager(
        BlockPool(room.num_slots // room.block_size),
        PrefixTree(room.block_size),
        SwapManager(host_blocks) if host_blocks else None,
        share_prefixes=share_prefixes,
    )


def sharing_memory(room: Room) -> KVManager:
    """`paged_memory`, with prefixes shared among requests."""
    return paged_memory(room, share_prefixes=True)


def swapping_memory(room: Room) -> KVManager:
    """`paged_memory`, with a host pool behind it for those that are preempted."""
    return paged_memory(room, swap=True)


def sharing_swapping_memory(room: Room) -> KVManager:
    """`sharing_memory`, with a host pool behind it: it keeps what the device has no room for."""
    return paged_memory(room, share_prefixes=True, swap=True)


def reserved_maximum(room: Room) -> ReservingCache:
    """A region for the prompt and all that the user allows; where that is the model's context, the whole context."""
    return ReservingCache(room.num_slots, prompt_and_maximum)


def reserved_power_of_two(room: Room) -> BuddyCache:
    """A region for the prompt and the answer's true length, rounded up to a power of two.

    As the PagedAttention paper's "Orca (Pow2)", it is told the length to within a factor of two.
    """

    def wants(sequence: Sequence) -> int:
        num_output = room.final_slots[sequence.request.id] + 1 - sequence.num_prompt_tokens
        return sequence.num_prompt_tokens + (1 << (num_output - 1).bit_length()) - 1

    return BuddyCache(room.num_slots, wants)


def reserved_by_oracle(room: Room) -> ReservingCache:
    """A region of just the slots that the request will have filled in the end, as if somebody knew."""
    return ReservingCache(room.num_slots, as_recorded(room.final_slots))


_ALL = (
    Policy("static", reserved_maximum, "static batches, the maximum reserved", StaticBatches, watermark=0),
    Policy("reserve-max", reserved_maximum, "continuous, the maximum reserved", watermark=0),
    Policy("reserve-pow2", reserved_power_of_two, "continuous, a power of two reserved", watermark=0),
    Policy("reserve-oracle", reserved_by_oracle, "continuous, the true length reserved", watermark=0),
    Policy("paged", paged_memory, "continuous, in blocks"),
    Policy("paged-swap", swapping_memory, "in blocks, swapped to the host when preempted"),
    Policy("sharing", sharing_memory, "in blocks, prefixes shared"),
    Policy("sharing-swap", sharing_swapping_memory, "prefixes shared, the host keeps what was given up"),
    Policy("prefill-first", paged_memory, "in blocks, prompts before decodes", PrefillFirst),
    Policy("chunked", paged_memory, "in blocks, at most 512 tokens in a step", max_batch_tokens=512),
)
POLICIES = {policy.name: policy for policy in _ALL}
PAGED = POLICIES["paged"]
