"""What lesson 14 measures: the same traffic under five policies, and the same rush hour in several orders.

It prints nothing. Time is virtual, so all figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from statistics import fmean

from lessons.lesson14_a_day_of_traffic import solution
from lessons.lesson14_a_day_of_traffic.demand import Demand, alpaca, rush_hour, sharegpt
from lessons.lesson14_a_day_of_traffic.figures import Curve, Figures, OrderRow, Orders, Point, Traffic
from lessons.lesson14_a_day_of_traffic.reckoning import reckon
from lessons.lesson14_a_day_of_traffic.request_log import RequestLog, Visit, of, quantile
from minipaged.cost_model import preset
from minipaged.order import Order, by_priority, first_come_first_served, shortest_first
from minipaged.serving.figures import ServingFigures
from minipaged.serving.policy import PAGED, POLICIES, Policy
from minipaged.serving.service import Service, ServiceConfig
from minipaged.traffic import TimedRequest, first_requests

COST_MODEL = preset("a100-opt-13b")
BLOCK_SIZE = 16
POLICY_NAMES = ("static", "reserve-max", "reserve-pow2", "reserve-oracle", "paged")
LONG_FROM = 512  # tokens of prompt and answer: a longer request is a long one
RUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is served.

    Args:
        conversation_seconds, instruction_seconds: of each traffic at each rate.
        trace_requests: of a recorded trace.
        rates: as shares of the rate that was reckoned.
        further: by how much the rate goes up from the last of them, until the latency is above the limit.
        limit: the latency at which rates are compared, in seconds a token.
        rush_seconds: of the rush hour.
    """

    conversation_seconds: float
    instruction_seconds: float
    trace_requests: int
    rates: tuple[float, ...]
    further: float
    limit: float
    rush_seconds: float


# At 0.1 seconds a token, ten tokens come in a second: about what a quick reader reads.
FULL = Scale(150.0, 25.0, 400, (0.5, 0.8, 1.0, 1.15), 1.15, 0.1, RUSH_SECONDS)
SMALL = Scale(8.0, 1.0, 40, (0.8, 2.4), 2.0, 0.05, 5.0)


def measure(
    scale: Scale = FULL,
    demands: Iterable[Demand] | None = None,
    paged: Policy = PAGED,
    own_order: Order = solution.order,
    own_name: str = "patient",
) -> Figures:
    """Everything.

    Args:
        scale: how much.
        demands: what comes; ShareGPT-like and Alpaca-like traffic when None.
        paged: the engine's own way, perhaps with parts of the learner's.
        own_order: the learner's order, or ours.
        own_name: what its row is called.
    """
    if demands is None:
        demands = (sharegpt(scale.conversation_seconds), alpaca(scale.instruction_seconds))
    policies = {name: POLICIES[name] for name in POLICY_NAMES} | {"paged": paged}
    traffics = tuple(serve_all(demand, policies, scale) for demand in demands)
    batch = first_batches(POLICIES["static"])
    served = orders({**ORDERS, own_name: own_order}, paged, scale.rush_seconds)
    return Figures(scale.limit, traffics, served, max(visit.began - visit.arrival for visit in batch))


# Policies ------------------------------------------------------------------------------------------------------------


def serve_all(demand: Demand, policies: Mapping[str, Policy], scale: Scale) -> Traffic:
    """The same traffic under each policy, at rates around what each can bear."""
    prompt, answer = (fmean(lengths) for lengths in zip(*demand.lengths, strict=True))
    curves = tuple(sweep(name, policy, demand, scale) for name, policy in policies.items())
    return Traffic(demand.name, prompt, answer, curves)


def sweep(name: str, policy: Policy, demand: Demand, scale: Scale) -> Curve:
    """One policy at higher and higher rates, until its latency is above the limit."""
    reckoned = reckon(name, demand.lengths, COST_MODEL, BLOCK_SIZE).rate
    points: list[Point] = []
    busy: ServingFigures | None = None
    share = 0.0
    for share in scale.rates:
        busy = _add_point(points, policy, demand, share * reckoned)
    while points[-1].normalised <= scale.limit:
        share *= scale.further
        busy = _add_point(points, policy, demand, share * reckoned)
    assert busy is not None
    memory = busy.memory
    return Curve(
        name, tuple(points), crossing(points, scale.limit), reckoned, busy.batch_size,
        memory.live, memory.reserved, memory.internal, memory.external, memory.free, busy.preemptions,
    )  # fmt: skip


def _add_point(points: list[Point], policy: Policy, demand: Demand, rate: float) -> ServingFigures:
    """Serve at a rate. Returns the figures of the time in which requests came: afterwards the service runs empty."""
    service = Service(policy, COST_MODEL, _config())
    for request in demand.requests(rate):
        service.receive(request)
    while_they_came = service.figures()
    service.run_until()
    figures = service.figures()
    points.append(Point(rate, figures.num_requests, figures.all.normalised.mean))
    return while_they_came


def crossing(points: Iterable[Point], limit: float) -> float:
    """The rate at which the latency passes the limit, on a line between two points whose latencies are logarithms."""
    last: Point | None = None
    for point in points:
        if point.normalised > limit:
            if last is None:
                return point.rate
            way = log(limit / last.normalised) / log(point.normalised / last.normalised)
            return last.rate + way * (point.rate - last.rate)
        last = point
    raise ValueError(f"crossing: no point is above {limit} seconds a token")


# Act one -------------------------------------------------------------------------------------------------------------

FIRST_RATE = 0.5  # requests a second
FIRST_REQUESTS = 14


def first_batches(policy: Policy) -> list[Visit]:
    """The first requests of a quiet hour, one by one."""
    return serve_logged(policy, first_requests(sharegpt(1e9).requests(FIRST_RATE), FIRST_REQUESTS))


def serve_logged(policy: Policy, requests: Iterable[TimedRequest], config: ServiceConfig | None = None) -> list[Visit]:
    """Serve to the end, and keep each request but those that could never fit."""
    log = RequestLog()
    service = Service(policy, COST_MODEL, config or _config(), [log])
    for request in requests:
        number = service.engine.num_requests  # the next to come has it; one that is refused leaves it to another
        log.expect(number, request)
        if not service.receive(request):
            del log.visits[number]
    service.run_until()
    return list(log.visits.values())


def _config() -> ServiceConfig:
    return ServiceConfig(block_size=BLOCK_SIZE, max_tokens=COST_MODEL.network.max_positions)


# Orders --------------------------------------------------------------------------------------------------------------

ORDERS: dict[str, Order] = {
    "first come": first_come_first_served,
    "shortest": shortest_first,
    "priority": by_priority,
}
RUSH_SHARE = 1.5  # of what the paged service can bear


@lru_cache
def rush(seconds: float = RUSH_SECONDS) -> tuple[float, tuple[TimedRequest, ...]]:
    """Its rate, and its requests: half as many again as can be served."""
    demand = sharegpt(seconds)
    rate = RUSH_SHARE * reckon("paged", demand.lengths, COST_MODEL, BLOCK_SIZE).rate
    return rate, tuple(rush_hour(demand, rate))


def orders(chosen: Mapping[str, Order], paged: Policy = PAGED, seconds: float = RUSH_SECONDS) -> Orders:
    """The same rush hour in each order."""
    rate, requests = rush(seconds)
    rows = tuple(order_row(name, serve_logged(replace(paged, order=order), requests)) for name, order in chosen.items())
    return Orders(rate, len(requests), rows)


def order_row(name: str, visits: list[Visit]) -> OrderRow:
    """Who waited how long."""

    def both(group: list[Visit]) -> tuple[float, float]:
        latencies = [visit.normalised for visit in group]
        return quantile(latencies, 0.5), quantile(latencies, 0.99)

    def is_long(visit: Visit) -> bool:
        return visit.num_prompt + visit.num_output > LONG_FROM

    ended = of(visits, lambda visit: visit.ended > 0)
    short, long = of(ended, lambda visit: not is_long(visit)), of(ended, is_long)
    urgent, patient = of(ended, lambda visit: visit.priority == 0), of(ended, lambda visit: visit.priority > 0)
    return OrderRow(
        name, *both(ended), *both(short), *both(long), *both(urgent), *both(patient),
        max(visit.stood_still for visit in ended), len(visits) - len(ended),
    )  # fmt: skip
