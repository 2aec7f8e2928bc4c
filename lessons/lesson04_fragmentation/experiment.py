"""What lesson 4 measures: the same recorded requests on six memories, and where their slots went. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import ceil

from lessons.lesson04_fragmentation.figures import (
    BUDDY,
    GROWING,
    MAXIMUM,
    ORACLE,
    PAGED,
    WHOLE,
    Figures,
    Hole,
    Lost,
    PaperRow,
    Shares,
    SweepRow,
)  # fmt: skip
from lessons.lesson04_fragmentation.recorded_requests import RecordedRequest, like_alpaca, like_sharegpt, mean
from lessons.lesson04_fragmentation.service import Refusal, Service, SlotMemory, final_slots
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.contiguous.buddy import Buddy, region_size
from minipaged.memory.contiguous.buddy_cache import BuddyCache
from minipaged.memory.contiguous.growing_cache import GrowingCache
from minipaged.memory.contiguous.reserving_cache import ReservingCache, as_recorded, whole_context
from minipaged.memory.contiguous.space import Space
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree

MakeSpace = Callable[[int], Space]  # of a number of slots
CONTEXT = 2048  # positions of the model
MAX_NEW_TOKENS = 512  # what every user asks for at most, unless a sweep says otherwise
BLOCK_SIZE = 16  # of the paged memory
DRAWN_POOL_SLOTS = 4096
SHORT_REQUESTS = 60
SHORT_POOL_SLOTS = 2048  # for the traffic of short answers: so few that somebody waits there, too
SHORT_ANSWER = RecordedRequest(prompt=20, answer=7)
# A, C and E answer in 7 tokens; B, D and F go on; G waits.
HOLE_REQUESTS = [RecordedRequest(prompt, answer) for prompt, answer in
                 [(20, 7), (300, 400), (20, 7), (400, 450), (20, 7), (100, 500), (300, 100)]]  # fmt: skip
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is served, and from how many slots: always so few that somebody waits.

    Args:
        num_requests: of the traffic.
        pool_slots: of each memory.
        paper_slots: the same where the paper's systems are compared.
    """

    num_requests: int
    pool_slots: int
    paper_slots: int


# 16384 is near what the paper's model of 13 billion parameters had on its GPU: 15.7 thousand.
FULL, SMALL = Scale(100, 8192, 16384), Scale(20, 4096, 4096)


def paged(num_slots: int) -> KVManager:
    """The engine's own memory. Nothing is shared between requests: that is another lesson's gain."""
    return KVManager(BlockPool(num_slots // BLOCK_SIZE), PrefixTree(BLOCK_SIZE), share_prefixes=False)


def memories(num_slots: int, final: dict[int, int], buddy: MakeSpace = Buddy) -> dict[str, SlotMemory]:
    """One of each, empty.

    Args:
        num_slots: of each.
        final: request id -> slots that it will have used, which the oracle is told.
        buddy: the buddy allocator; the learner's takes the place of ours.
    """
    return {
        WHOLE: ReservingCache(num_slots, whole_context(CONTEXT)),
        MAXIMUM: ReservingCache(num_slots),
        BUDDY: BuddyCache(num_slots, space=buddy),
        ORACLE: ReservingCache(num_slots, as_recorded(final)),
        GROWING: GrowingCache(num_slots),
        PAGED: paged(num_slots),
    }


def measure(scale: Scale = FULL, traffic: list[RecordedRequest] | None = None, buddy: MakeSpace = Buddy) -> Figures:
    """Everything.

    Args:
        scale: how much.
        traffic: the recorded requests; ShareGPT-like ones when None.
        buddy: the buddy allocator.
    """
    long, short = like_sharegpt(scale.num_requests), like_alpaca(SHORT_REQUESTS)
    traffic = long if traffic is None else traffic
    pools = (long, scale.pool_slots), (short, SHORT_POOL_SLOTS)
    sweep = [SweepRow(f, *(reserved_utilisation(*pool, f) for pool in pools)) for f in (*FACTORS, None)]
    return Figures(
        lost=short_answer(buddy),
        hole=hole(),
        mean_prompt=mean(traffic, lambda r: r.prompt),
        mean_answer=mean(traffic, lambda r: min(r.answer, MAX_NEW_TOKENS)),
        shares=compare(traffic, scale.pool_slots, buddy),
        sweep=sweep,
        sweep_paged=[paged_utilisation(*pool) for pool in pools],
        paper=beside_paper(long, scale.paper_slots, buddy),
    )


def predicted_utilisation(traffic: Items[RecordedRequest]) -> float:
    """By hand: the prompt and in the mean half of the answer are there, of prompt and maximum."""
    requests = list(traffic)
    prompt = mean(requests, lambda r: r.prompt)
    answer = mean(requests, lambda r: min(r.answer, MAX_NEW_TOKENS))
    return (prompt + answer / 2) / (prompt + MAX_NEW_TOKENS - 1)


def short_answer(buddy: MakeSpace = Buddy) -> list[Lost]:
    """One request with a short answer, alone: what is held for it, and what of that it has filled, when it ends."""
    rows = []
    final = final_slots([SHORT_ANSWER], MAX_NEW_TOKENS)
    for name, memory in memories(DRAWN_POOL_SLOTS, final, buddy).items():
        service = Service(memory, [SHORT_ANSWER], MAX_NEW_TOKENS, CONTEXT)
        held = filled = 0
        while service.scheduler.has_work:
            service.open_step()
            held, filled = memory.held_slots, memory.live_slots
            service.close_step()
        rows.append(Lost(name, held, filled, held - filled))
    return rows


def until_no_hole_fits() -> tuple[Service, Refusal]:
    """Prompt + maximum, up to the step in which enough is free in sum, and the next request is refused; still open."""
    service = Service(ReservingCache(DRAWN_POOL_SLOTS), HOLE_REQUESTS, MAX_NEW_TOKENS, CONTEXT)
    while True:
        service.open_step()
        refusal = service.refusal()
        if refusal is not None and refusal.needed <= refusal.free:
            return service, refusal
        service.close_step()


def hole() -> Hole:
    """The same to its end, and the same requests on the paged memory."""
    service, refusal = until_no_hole_fits()
    step = service.num_steps
    last = len(HOLE_REQUESTS) - 1
    waited = step + _steps_until_admitted(service, last)
    other = Service(paged(DRAWN_POOL_SLOTS), HOLE_REQUESTS, MAX_NEW_TOKENS, CONTEXT)
    other.open_step()
    waited_paged = 1 + _steps_until_admitted(other, last)
    return Hole(refusal.needed, refusal.free, refusal.largest_hole, step, waited - 1, waited_paged - 1)


def _steps_until_admitted(service: Service, sequence: int) -> int:
    """Steps from the open one until a sequence runs, 0 when it does already."""
    steps = 0
    while all(running.id != sequence for running in service.scheduler.running):
        service.close_step()
        service.open_step()
        steps += 1
    return steps


def compare(traffic: list[RecordedRequest], num_slots: int, buddy: MakeSpace = Buddy) -> list[Shares]:
    """The traffic on each memory."""
    rows = []
    for name, memory in memories(num_slots, final_slots(traffic, MAX_NEW_TOKENS), buddy).items():
        service = Service(memory, traffic, MAX_NEW_TOKENS, CONTEXT)
        counts = service.run()
        rows.append(
            Shares(
                name,
                live=counts.pool_utilisation,
                reserved=counts.reserved / counts.total,
                internal=counts.internal / counts.total,
                external=counts.external / counts.total,
                short=counts.short / counts.total,
                utilisation=counts.utilisation,
                mean_running=service.num_running / service.num_steps,
                steps=service.num_steps,
                preemptions=service.num_preemptions,
                copied=service.num_copied,
            )
        )
    return rows


def reserved_utilisation(traffic: list[RecordedRequest], num_slots: int, factor: float | None) -> float:
    """Utilisation when everyone reserves the prompt and `factor` times the real answer, at most the whole context."""
    if factor is None:
        most = [CONTEXT - request.prompt + 1 for request in traffic]
    else:
        most = [min(ceil(factor * request.answer), CONTEXT - request.prompt + 1) for request in traffic]
    return Service(ReservingCache(num_slots), traffic, most, CONTEXT).run().utilisation


def paged_utilisation(traffic: list[RecordedRequest], num_slots: int) -> float:
    """Utilisation of the paged memory, which does not look at the maximum."""
    return Service(paged(num_slots), traffic, CONTEXT // 2, CONTEXT).run().utilisation


def beside_paper(traffic: list[RecordedRequest], num_slots: int, buddy: MakeSpace = Buddy) -> list[PaperRow]:
    """The paper's three reserving systems, which find their addresses with a buddy allocator, and the paged one."""
    most = CONTEXT // 2
    final = final_slots(traffic, most)
    rounded = {i: request.prompt + region_size(min(request.answer, most)) - 1 for i, request in enumerate(traffic)}
    cases: list[tuple[str, SlotMemory, float]] = [
        ("max: whole context", BuddyCache(num_slots, whole_context(CONTEXT), space=buddy), 20.4),
        ("pow2: the answer, rounded up", BuddyCache(num_slots, as_recorded(rounded), space=buddy), 26.8),
        ("oracle: the answer", BuddyCache(num_slots, as_recorded(final), space=buddy), 38.2),
        (PAGED, paged(num_slots), 96.3),
    ]
    return [
        PaperRow(name, 100 * Service(memory, traffic, most, CONTEXT).run().pool_utilisation, paper)
        for name, memory, paper in cases
    ]
