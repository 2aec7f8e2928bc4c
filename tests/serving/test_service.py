"""Services on virtual time: what must hold whatever the policy, and what the policies are there for."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from minipaged.cost_model import LLAMA_8B, CostModel, Machine, preset
from minipaged.order import ORDERS, patient, shortest_first
from minipaged.plan import Chunk, Sampling, StepPlan
from minipaged.serving.figures import ServingFigures
from minipaged.serving.policy import PAGED, POLICIES
from minipaged.serving.service import Service, ServiceConfig, serve
from minipaged.trace import StepRecord
from minipaged.traffic import SHAREGPT, TimedRequest, closely_limited, poisson

OPT = preset("a100-opt-13b")
SMALL = ServiceConfig(num_slots=3000, max_sequences=64)


def some_traffic(count: int = 120, rate: float = 3.0, seed: int = 0) -> list[TimedRequest]:
    return list(islice(poisson(SHAREGPT, rate, seed=seed, num_priorities=2), count))


def test_one_request_by_hand() -> None:
    """Its prompt is one step, each further token another; nobody is in the way."""
    figures = serve(PAGED, [TimedRequest(5.0, tuple(range(3, 103)), 3)], OPT)
    sampling = Sampling(0.0, None, 1.0, 0, 0, 0)

    def seconds(start: int, n: int) -> float:
        return OPT.cost(StepPlan(0, [Chunk(0, start, [1] * n, (), 1, sampling)], []), 16).seconds

    prompt, second, third = seconds(0, 100), seconds(100, 1), seconds(101, 1)
    assert figures.all.first_token.longest == pytest.approx(prompt)
    assert figures.all.between_tokens.mean == pytest.approx((second + third) / 2)
    assert figures.all.normalised.mean == pytest.approx((prompt + second + third) / 3)
    assert figures.seconds == pytest.approx(prompt + second + third), "time begins with the first arrival"
    assert (figures.num_steps, figures.output_tokens, figures.batch_size) == (3, 3, 1)


@pytest.mark.parametrize("name", POLICIES)
def test_every_request_ends_with_all_of_its_tokens(name: str) -> None:
    traffic = some_traffic()
    records: list[StepRecord] = []
    service = Service(POLICIES[name], OPT, SMALL, listeners=[records.append])
    figures = service.serve(traffic)
    assert figures.num_requests + figures.num_refused == len(traffic)
    assert figures.num_finished == figures.num_requests > 0
    assert not service.has_work and service.memory.held_slots == 0
    if name != "reserve-pow2":  # a region of 2,048 slots is the largest in a pool of 3,000
        assert not figures.num_refused
        assert figures.prompt_tokens == sum(len(request.prompt_token_ids) for request in traffic)
        assert figures.output_tokens == sum(request.num_output for request in traffic)
    assert figures.output_tokens == sum(len(record.drawn) for record in records)
    memory = figures.memory
    shares = (memory.live, memory.reserved, memory.internal, memory.external, memory.free)
    assert sum(shares) == pytest.approx(1) and min(shares) >= 0
    assert figures.short.num_requests + figures.long.num_requests == figures.num_requests
    assert figures.busy_seconds == pytest.approx(sum(record.seconds for record in records))
    started = [record.started_seconds for record in records]
    assert started == sorted(started)
    assert sum(chunk.num_tokens - chunk.num_recomputed for record in records for chunk in record.chunks) == (
        figures.prompt_tokens - figures.cached_tokens + figures.output_tokens - figures.num_finished
    ), "each token is computed once, but for what is found, what is computed again, and the last of each answer"


def test_what_each_step_forward_brings() -> None:
    """More requests than the first can serve: each policy serves them sooner than the one before it."""
    names = ("static", "reserve-max", "reserve-oracle", "paged")
    traffic = some_traffic(200, rate=2.0)
    figures = {name: serve(POLICIES[name], traffic, OPT) for name in names}
    means = [figures[name].all.normalised.mean for name in names]
    assert means == sorted(means, reverse=True) and means[0] > 10 * means[-1]
    assert figures["reserve-max"].memory.internal > figures["reserve-max"].memory.live
    assert figures["reserve-oracle"].memory.internal == pytest.approx(0)
    assert figures["reserve-oracle"].memory.reserved > 0.3 * figures["reserve-oracle"].memory.live
    assert figures["paged"].memory.utilisation > 0.95
    assert figures["paged"].memory.external == 0


def test_a_power_of_two_wastes_less_than_half_of_the_answer() -> None:
    figures = serve(POLICIES["reserve-pow2"], some_traffic(60), OPT)
    memory = figures.memory
    assert memory.internal > 0 and memory.utilisation > 0.2


def test_static_batches_take_nobody_in_before_they_are_over() -> None:
    service = Service(POLICIES["static"], OPT)
    sizes: list[int] = []

    def watch(record: StepRecord) -> None:
        sequences = {chunk.sequence for chunk in record.chunks}
        assert not running or sequences <= running, "nobody joins"
        running.clear()
        running.update(sequences - {event.sequence for event in record.events if event.kind == "finish"})
        sizes.append(len(sequences))

    running: set[int] = set()
    service.engine.listeners.append(watch)
    service.serve(closely_limited(iter(some_traffic(80, rate=8.0))))
    assert max(sizes) > 10


def long_prompts_among_decodes() -> Iterator[TimedRequest]:
    for number in range(8):
        yield TimedRequest(0.0, (3 + number, *(2,) * 20), 200)
    for number in range(3):
        yield TimedRequest(1.0, (99 + number, *(2,) * 1900), 20)


def test_prefill_first_never_mixes_and_lets_decodes_wait() -> None:
    mixed: dict[str, int] = {}
    figures: dict[str, ServingFigures] = {}
    for name in ("chunked", "prefill-first"):
        kinds: list[set[bool]] = []
        service = Service(POLICIES[name], OPT)
        service.engine.listeners.append(
            lambda record, kinds=kinds: kinds.append({chunk.kind == "decode" for chunk in record.chunks})  # type: ignore[misc]
        )
        figures[name] = service.serve(long_prompts_among_decodes())
        mixed[name] = sum(len(kind) == 2 for kind in kinds)
    assert mixed["chunked"] >= 3 * 1900 / 512 and mixed["prefill-first"] == 0
    first, chunked = figures["prefill-first"].all, figures["chunked"].all
    assert first.first_token.longest < chunked.first_token.longest
    assert first.between_tokens.longest > 5 * chunked.between_tokens.longest, "three prompts after each other"


def test_small_chunks_make_short_gaps() -> None:
    gaps = [
        serve(
            replace(PAGED, max_batch_tokens=budget), long_prompts_among_decodes(), OPT, ServiceConfig(max_sequences=64)
        ).all.between_tokens.longest
        for budget in (2048, 512, 128)
    ]
    assert gaps[0] > 2 * gaps[1] > 2 * gaps[2]


def test_swapping_moves_blocks_and_recomputes_nothing() -> None:
    config = replace(SMALL, num_slots=2100)
    traffic = some_traffic(60, rate=4.0)
    again, swapped = (serve(POLICIES[name], traffic, OPT, config) for name in ("paged", "paged-swap"))
    assert again.preemptions and again.recomputed_tokens and not again.swapped_blocks
    assert swapped.preemptions and swapped.swapped_blocks
    assert swapped.recomputed_tokens < again.recomputed_tokens / 5, "only the last blocks, which were not full"


def test_what_is_shared_is_not_computed() -> None:
    beginning = tuple(range(3, 163))
    traffic = [TimedRequest(float(i), (*beginning, 1000 + i, 2, 2), 5) for i in range(10)]
    alone, shared = (serve(POLICIES[name], traffic, OPT) for name in ("paged", "sharing"))
    assert alone.hit_rate == 0
    assert shared.cached_tokens == 9 * 160
    assert shared.all.first_token.mean < alone.all.first_token.mean


def test_what_only_waits_was_not_found() -> None:
    """Figures in the middle: one is computed to its 64th token, the other has just come."""
    service = Service(PAGED, OPT, replace(SMALL, max_batch_tokens=64))
    service.submit(TimedRequest(0.0, (3,) * 100, 5))
    service.engine.step()
    service.submit(TimedRequest(0.0, (4,) * 100, 5))
    assert (service.figures().prompt_tokens, service.figures().cached_tokens) == (200, 0)
    service.run_until()
    assert service.figures().cached_tokens == 0


# Orders --------------------------------------------------------------------------------------------------------------


def by_order(traffic: list[TimedRequest]) -> dict[str, ServingFigures]:
    config = replace(SMALL, long_from=500)
    orders = ORDERS | {"patient": patient(shortest_first, 20)}
    return {name: serve(replace(PAGED, order=order), traffic, OPT, config) for name, order in orders.items()}


def test_short_requests_gain_and_nobody_starves() -> None:
    """More than can be served for a while: whoever is passed over still ends, and patience bounds how late."""
    traffic = list(closely_limited(iter(some_traffic(200, rate=4.0))))
    figures = by_order(traffic)
    for served in figures.values():
        assert served.num_finished == 200
    fcfs, shortest, waits = figures["fcfs"], figures["shortest"], figures["patient"]
    assert shortest.short.normalised.p50 < fcfs.short.normalised.p50 / 2
    assert shortest.short.normalised.p99 < fcfs.short.normalised.p99 / 2
    assert shortest.long.waiting.longest > fcfs.long.waiting.longest, "the price is paid by the longest"
    assert fcfs.long.waiting.longest <= waits.long.waiting.longest < shortest.long.waiting.longest
    assert waits.short.normalised.mean < fcfs.short.normalised.mean


def test_patience_bounds_who_overtakes() -> None:
    per_request = 20
    order = patient(shortest_first, per_request)
    service = Service(replace(PAGED, order=order), OPT, replace(SMALL, max_sequences=2))
    requests = [
        TimedRequest(0.0, (3 + number,), 1 + number % 70, max_tokens=100 + number * 37 % 300) for number in range(150)
    ]
    started: list[int] = []
    service.engine.listeners.append(
        lambda record: started.extend(event.sequence for event in record.events if event.kind == "admit")
    )
    service.serve(requests)
    first = list(dict.fromkeys(started))
    for place, number in enumerate(first):
        overtaken_by = sum(other > number for other in first[:place])
        assert overtaken_by <= ((requests[number].max_tokens or 0) - 100) / per_request
    assert first != sorted(first), "somebody was overtaken"


def test_lower_priorities_go_first() -> None:
    traffic = [TimedRequest(0.0, (3 + i,) * 50, 100, priority=i % 2) for i in range(40)]
    ends: list[int] = []
    service = Service(replace(PAGED, order=ORDERS["priority"]), OPT, replace(SMALL, max_sequences=4))
    service.engine.listeners.append(
        lambda record: ends.extend(event.sequence for event in record.events if event.kind == "finish")
    )
    service.serve(traffic)
    assert [number % 2 for number in ends] == [0] * 20 + [1] * 20


# The door ------------------------------------------------------------------------------------------------------------


def test_two_services_meet_at_the_same_moment() -> None:
    services = [Service(POLICIES[name], OPT, SMALL) for name in ("static", "paged")]
    for request in some_traffic(30):
        for service in services:
            assert service.receive(request)
            assert service.clock.now >= request.arrival_seconds
    done = [service.figures().num_finished for service in services]
    assert done[0] < done[1]
    for service in services:
        service.run_until()
        assert service.figures().num_finished == 30


def test_what_can_never_fit_is_refused_and_counted() -> None:
    config = replace(SMALL, num_slots=320)
    traffic = [TimedRequest(0.0, (3,) * 300, 40), TimedRequest(0.0, (4,) * 10, 5), TimedRequest(0.0, (5,) * 3000, 1)]
    service = Service(PAGED, OPT, replace(config, max_tokens=40))
    assert [service.submit(request) for request in traffic] == [False, True, False]
    service.run_until()
    assert (service.figures().num_refused, service.figures().num_finished) == (2, 1)


def test_an_answer_is_cut_at_what_its_user_or_the_context_allows() -> None:
    requests = [TimedRequest(0.0, (3,) * 10, 50, max_tokens=7), TimedRequest(0.0, (4,) * 2040, 50)]
    service = Service(PAGED, OPT)
    drawn: Counter[int] = Counter()
    service.engine.listeners.append(lambda record: drawn.update(sequence for sequence, _ in record.drawn))
    service.serve(requests)
    assert drawn == {0: 7, 1: 9}, "the last token needs no position: 2040 + 9 - 1 is the context"
    assert service.figures().num_finished == 2


def test_the_length_of_an_answer_is_nobodys_to_know() -> None:
    """Plans are the same until the first answer ends, however long the others will be."""

    def plans(lengths: tuple[int, ...]) -> list[tuple[int, ...]]:
        kept: list[tuple[int, ...]] = []
        service = Service(PAGED, OPT, SMALL)
        service.engine.listeners.append(lambda record: kept.append(tuple(chunk.num_tokens for chunk in record.chunks)))
        service.serve(TimedRequest(0.0, (3 + i,) * 30, length) for i, length in enumerate(lengths))
        return kept

    assert plans((10, 300, 20))[:10] == plans((900, 11, 10))[:10]


def test_memory_does_not_grow_with_the_traffic() -> None:
    fast = CostModel(Machine("fast", 1e15, 1e13, 1.0, 1.0, 1e11, 0.0, 1e-3, "for the test"), LLAMA_8B)

    def traffic(count: int) -> Iterator[TimedRequest]:
        for i in range(count):
            yield TimedRequest(0.05 * i, (3 + i, *(2,) * (100 + i * 37 % 200)), 5 + i % 30)

    for name in ("paged", "sharing"):
        service = Service(POLICIES[name], fast, replace(SMALL, num_slots=6_000))
        requests = traffic(650)
        tracemalloc.start()
        sizes = []
        for count in (50, 150, 450):
            service.serve(islice(requests, count))
            gc.collect()  # empties the interpreter's own store of small tuples
            sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert service.figures().num_finished == 650
        # A histogram's buckets come one by one; a request's tokens alone would be more than a thousand bytes.
        assert (sizes[2] - sizes[1]) / 450 < 100
