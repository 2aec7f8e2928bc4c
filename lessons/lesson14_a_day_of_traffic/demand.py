"""Demand: what comes to the service, at whatever rate is asked for. It knows lengths and times, and no service.

Made requests are independent of each other; recorded ones keep their order and their gaps, and are played faster or
slower. At every rate they are the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from minipaged.traffic import (
    ALPACA,
    SHAREGPT,
    Mix,
    TimedRequest,
    at_speed,
    closely_limited,
    mean_rate,
    poisson,
    read_traffic,
)

SEED = 14
_NUM_LENGTHS = 2000


@dataclass(frozen=True, slots=True)
class Demand:
    """Some traffic.

    Args:
        name: for a reader.
        lengths: (tokens of the prompt, tokens of the answer) of requests like those that come.
        requests: of a rate, in requests a second: those that come, in order, and then no more.
    """

    name: str
    lengths: tuple[tuple[int, int], ...]
    requests: Callable[[float], Iterator[TimedRequest]]


def made(mix: Mix, seconds: float) -> Demand:
    """Requests that come at random for so many seconds, with the mean lengths of a data set."""
    requests = islice(poisson(mix, 1.0, seed=SEED), _NUM_LENGTHS)
    lengths = tuple((len(request.prompt_token_ids), request.num_output) for request in requests)

    def at(rate: float) -> Iterator[TimedRequest]:
        endless = poisson(mix, rate, seed=SEED, num_priorities=2)
        return takewhile(lambda request: request.arrival_seconds < seconds, endless)

    return Demand(mix.name, lengths, at)


def recorded(path: Path, count: int, context: int) -> Demand:
    """The first requests of a file; those that no model with this context could serve are passed over.

    Args:
        path: see `read_traffic`.
        count: of requests. At each rate it is these, faster or slower.
        context: of the model, in tokens.

    Raises:
        ValueError: it cannot be read, or has fewer than two requests that fit, or all come at once.
    """

    def fits(request: TimedRequest) -> bool:
        return len(request.prompt_token_ids) + request.num_output - 1 <= context

    kept = list(islice(filter(fits, read_traffic(path)), count))
    own_rate = mean_rate(iter(kept))
    lengths = tuple((len(request.prompt_token_ids), request.num_output) for request in kept)
    return Demand(path.stem, lengths, lambda rate: at_speed(iter(kept), rate / own_rate))


def sharegpt(seconds: float) -> Demand:
    """Conversations: prompts of 161 tokens and answers of 338 in the mean."""
    return made(SHAREGPT, seconds)


def alpaca(seconds: float) -> Demand:
    """Short instructions: prompts of 19 tokens and answers of 58 in the mean."""
    return made(ALPACA, seconds)


def rush_hour(demand: Demand, rate: float) -> list[TimedRequest]:
    """More than can be served, from users who limit their answers to the next power of two above what they will get.

    Without such limits nobody could tell a short request from a long one before it is over.
    """
    return list(closely_limited(demand.requests(rate)))
