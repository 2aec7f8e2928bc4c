"""Figures: all that lesson 14 measures, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """One policy at one request rate.

    Args:
        rate: requests that came in a second.
        num_requests: of them.
        normalised: seconds from arrival to the end for each token of the answer, mean over all requests.
    """

    rate: float
    num_requests: int
    normalised: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy on one traffic.

    Args:
        policy: its name.
        points: by rate; the last one is above the limit.
        rate: requests a second at which the mean normalised latency reaches the limit, between two points.
        reckoned: the rate that arithmetic said it could bear.
        running: requests in a step, in the mean, at the last point, while requests came.
        live, reserved, internal, external, free: shares of all slots then.
        preemptions: then.
    """

    policy: str
    points: tuple[Point, ...]
    rate: float
    reckoned: float
    running: float
    live: float
    reserved: float
    internal: float
    external: float
    free: float
    preemptions: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """All policies on one traffic."""

    name: str
    mean_prompt: float
    mean_answer: float
    curves: tuple[Curve, ...]

    def of(self, policy: str) -> Curve:
        """One policy's."""
        return next(curve for curve in self.curves if curve.policy == policy)

    def times(self, policy: str, other: str) -> float:
        """How many times the other's rate this policy bears at the same latency."""
        return self.of(policy).rate / self.of(other).rate


@dataclass(frozen=True, slots=True)
class OrderRow:
    """What an order did to whom, in seconds: for each token of the answer, and the longest that one stood still.

    Args:
        order: its name.
        p50, p99: of all.
        short_p50, short_p99, long_p50, long_p99: of short requests and long ones.
        urgent_p50, urgent_p99, patient_p50, patient_p99: of those with the lower number of priority, and the others.
        stood_still: the longest time in which somebody got no token.
        unfinished: requests that were not served to the end.
    """

    order: str
    p50: float
    p99: float
    short_p50: float
    short_p99: float
    long_p50: float
    long_p99: float
    urgent_p50: float
    urgent_p99: float
    patient_p50: float
    patient_p99: float
    stood_still: float
    unfinished: int


@dataclass(frozen=True, slots=True)
class Orders:
    """All orders on the same rush hour."""

    rate: float
    num_requests: int
    rows: tuple[OrderRow, ...]

    def of(self, order: str) -> OrderRow:
        """One order's."""
        return next(row for row in self.rows if row.order == order)


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything.

    Args:
        limit: the latency at which rates are compared, in seconds a token.
        traffics: what came, and how each policy bore it.
        orders: who goes first, when too much comes.
        waited_for_batch: of act one: how long somebody stood before the door of a batch with empty places, in seconds.
    """

    limit: float
    traffics: tuple[Traffic, ...]
    orders: Orders
    waited_for_batch: float
