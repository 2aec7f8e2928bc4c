"""Traffic: requests in the order in which they come, recorded or made. One at a time, so a day needs no more memory
than a minute.

Recorded traffic has lengths and no text. Where nothing says that two prompts have anything in common, a prompt is one
token of its own and then the same token again and again: that is enough for it to share nothing with any other. A
Mooncake trace names each piece of 512 tokens by a hash, so equal pieces become equal tokens.

It knows nothing of who serves it.

Formats:
    Azure's LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.
    Mooncake's traces: JSON lines with timestamp (milliseconds), input_length, output_length, hash_ids.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any, TextIO

TOKENS_PER_HASH = 512  # of a Mooncake trace
_FILLER = 2  # 0 and 1 are what a `ScriptedRunner` answers with
_FIRST_NAME = 3  # tokens from here on stand for a request, or for a hash
_NUM_NAMES = 2**61  # hashes are below
_LONGEST = 2**24  # tokens of a prompt or an answer; a number above it is a slip, and a prompt of it fills the memory


@dataclass(frozen=True, slots=True)
class TimedRequest:
    """A request that is to come.

    Args:
        arrival_seconds: since the beginning of the traffic, which in an Azure file is its first arrival.
        prompt_token_ids: at least one.
        num_output: tokens of its answer, at least 1. Whoever serves it is not to know before they are written.
        priority: lower goes first, under an order that looks at it.
        max_tokens: what its user allows for the answer; None leaves that to whoever serves it.
    """

    arrival_seconds: float
    prompt_token_ids: tuple[int, ...]
    num_output: int
    priority: int = 0
    max_tokens: int | None = None


def read_traffic(path: Path, tokens_per_hash: int = TOKENS_PER_HASH) -> Iterator[TimedRequest]:
    """The requests of a file, by time: Mooncake's format if its name ends with `.jsonl`, else Azure's.

    Args:
        path: the file.
        tokens_per_hash: see `read_mooncake`.

    Raises:
        ValueError: the file cannot be read or a line is no request; the message names the line.
    """
    return read_mooncake(path, tokens_per_hash) if path.suffix == ".jsonl" else read_azure(path)


def read_azure(path: Path) -> Iterator[TimedRequest]:
    """The requests of a CSV file, by time.

    Raises:
        ValueError: the file cannot be read or a line is no request; the message names the line.
    """
    began: datetime | None = None

    def request(number: int, row: dict[str, str]) -> TimedRequest:
        nonlocal began
        time = datetime.fromisoformat(row["TIMESTAMP"][:26])  # its seventh digit is one more than Python reads
        began = began or time
        num_prompt, num_output = _lengths(row["ContextTokens"], row["GeneratedTokens"])
        return TimedRequest((time - began).total_seconds(), _own_prompt(number, num_prompt), num_output)

    expected = (
        "it must be CSV with TIMESTAMP, and ContextTokens and GeneratedTokens of at least 1, in the order of time"
    )
    return _read(path, csv.DictReader, 2, request, expected)


def read_mooncake(path: Path, tokens_per_hash: int = TOKENS_PER_HASH) -> Iterator[TimedRequest]:
    """The requests of a JSON lines file, by time.

    Args:
        path: the file.
        tokens_per_hash: into how many tokens a hash is spelt out. 512 are what it stands for; with 1, a token stands
            for a whole piece, and lengths are counted in pieces.

    Raises:
        ValueError: another number of tokens, the file cannot be read or a line is no request; the message names it.
    """
    if tokens_per_hash not in (1, TOKENS_PER_HASH):
        raise ValueError(f"read_mooncake: tokens_per_hash is {tokens_per_hash}; it must be 1 or {TOKENS_PER_HASH}")

    def request(number: int, line: str) -> TimedRequest:
        row: dict[str, Any] = json.loads(line)
        num_prompt, num_output = _lengths(row["input_length"], row["output_length"])
        hashes = row["hash_ids"]
        if not all(type(name) is int and 0 <= name < _NUM_NAMES for name in hashes):
            raise ValueError("hash_ids must be whole numbers of at least 0")
        if len(hashes) != -(-num_prompt // TOKENS_PER_HASH):
            raise ValueError(f"{len(hashes)} hashes for {num_prompt} tokens")
        if tokens_per_hash == 1:
            prompt = tuple(_FIRST_NAME + name for name in hashes)
            num_output = -(-num_output // TOKENS_PER_HASH)
        else:
            prompt = _spelt_out(hashes, num_prompt)
        return TimedRequest(row["timestamp"] / 1000, prompt, num_output)

    expected = (
        "it must be JSON with timestamp, input_length, output_length and one of hash_ids for every "
        f"{TOKENS_PER_HASH} tokens, in the order of time"
    )
    return _read(path, iter, 1, request, expected)


def _read(
    path: Path,
    rows: Callable[[TextIO], Iterable[Any]],
    first_line: int,
    request: Callable[[int, Any], TimedRequest],
    expected: str,
) -> Iterator[TimedRequest]:
    number, last, empty = first_line, 0.0, True
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(rows(file), start=first_line):
                come = request(number, row)
                if not last <= come.arrival_seconds < inf:
                    raise ValueError(f"it comes at {come.arrival_seconds} seconds, the one before it at {last}")
                yield come
                last, empty = come.arrival_seconds, False
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"traffic {path}: it cannot be read: {reason}") from None
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, csv.Error) as error:
        why = f"{type(error).__name__}: {error!s:.160}"
        raise ValueError(f"traffic {path}, line {number}: {expected} ({why})") from None
    if empty:
        raise ValueError(f"traffic {path}: it has no request; {expected}")


def _lengths(prompt: Any, output: Any) -> tuple[int, int]:
    num_prompt, num_output = int(prompt), int(output)
    if not (1 <= num_prompt <= _LONGEST and 1 <= num_output <= _LONGEST):
        raise ValueError(f"lengths {num_prompt} and {num_output}; at most {_LONGEST}")
    return num_prompt, num_output


def _own_prompt(name: int, length: int) -> tuple[int, ...]:
    return (_FIRST_NAME + name, *(_FILLER,) * (length - 1))


def _spelt_out(hashes: list[int], length: int) -> tuple[int, ...]:
    """A hash's first token names it, the others follow."""
    tokens = [_FILLER] * length
    tokens[::TOKENS_PER_HASH] = [_FIRST_NAME + name for name in hashes]
    return tuple(tokens)


# Made traffic --------------------------------------------------------------------------------------------------------


class Lengths:
    """Log-normal lengths: many short ones, a few that are very long; cut at 1 and at the longest.

    Args:
        mean: that they have once they are cut.
        longest: tokens.
        spread: standard deviation of a length's logarithm.
    """

    def __init__(self, mean: float, longest: int = 1024, spread: float = 0.9) -> None:
        if not 1 <= mean < longest:
            raise ValueError(f"Lengths: mean is {mean}; it must be at least 1 and below the longest, {longest}")
        self.longest = longest
        self.spread = spread
        self._noise = NormalDist()
        self._scale = 1.0
        factors = [self._factor((i + 0.5) / 1000) for i in range(1000)]
        low, high = 0.0, float(longest)
        for _ in range(50):  # the mean grows with the scale, so halving the interval finds it
            self._scale = (low + high) / 2
            found = sum(map(self._length, factors)) / len(factors)
            low, high = (self._scale, high) if found < mean else (low, self._scale)

    def at(self, share: float) -> int:
        """The length that this share of all lengths is below, 0 < share < 1."""
        return self._length(self._factor(share))

    def _factor(self, share: float) -> float:
        return exp(self.spread * self._noise.inv_cdf(share))

    def _length(self, factor: float) -> int:
        return min(max(round(self._scale * factor), 1), self.longest)


@dataclass(frozen=True, slots=True)
class Mix:
    """What made requests look like.

    Args:
        name: for the command line.
        mean_prompt: mean tokens of the prompts.
        mean_output: mean tokens of the answers.
    """

    name: str
    mean_prompt: float
    mean_output: float


# Means: the PagedAttention paper (arXiv 2309.06180), figure 11. The shape is ours.
SHAREGPT = Mix("sharegpt", 161, 338)
ALPACA = Mix("alpaca", 19, 58)
MIXES = {mix.name: mix for mix in (SHAREGPT, ALPACA)}


def poisson(mix: Mix, rate: float, *, seed: int = 0, num_priorities: int = 1) -> Iterator[TimedRequest]:
    """Requests without end that come independently of each other.

    Args:
        mix: their lengths.
        rate: of them in a second, in the mean.
        seed: same seed, same requests; at another rate the same requests come at other times.
        num_priorities: each gets one below this, at random.

    Raises:
        ValueError: a rate that is not above 0.
    """
    if not 0 < rate < float("inf"):
        raise ValueError(f"poisson: rate is {rate}; it must be above 0 requests a second")
    noise = Random(seed)
    prompts, outputs = Lengths(mix.mean_prompt), Lengths(mix.mean_output)
    now, number = 0.0, 0
    while True:
        gap, prompt, output, priority = (1 - noise.random() for _ in range(4))  # above 0, at most 1
        now -= log(gap) / rate
        yield TimedRequest(
            now,
            _own_prompt(number, prompts.at(min(prompt, 1 - 1e-12))),
            outputs.at(min(output, 1 - 1e-12)),
            int(num_priorities * (1 - priority)),
        )
        number += 1


# What is done to traffic ---------------------------------------------------------------------------------------------


def first_requests(traffic: Iterator[TimedRequest], count: int | None) -> Iterator[TimedRequest]:
    """The first so many; all with None."""
    return traffic if count is None else islice(traffic, count)


def at_speed(traffic: Iterator[TimedRequest], speed: float) -> Iterator[TimedRequest]:
    """The same requests, coming `speed` times as fast.

    Raises:
        ValueError: a speed that is not above 0.
    """
    if not 0 < speed < float("inf"):
        raise ValueError(f"at_speed: speed is {speed}; it must be above 0")
    return (replace(request, arrival_seconds=request.arrival_seconds / speed) for request in traffic)


def closely_limited(traffic: Iterator[TimedRequest]) -> Iterator[TimedRequest]:
    """The same requests from users who have an idea: each allows the next power of two tokens, at least its answer."""
    return (replace(request, max_tokens=1 << (request.num_output - 1).bit_length()) for request in traffic)


def mean_rate(traffic: Iterator[TimedRequest]) -> float:
    """Requests a second, from the first to the last.

    Raises:
        ValueError: fewer than two requests, or all at once.
    """
    count, first, last = 0, 0.0, 0.0
    for count, request in enumerate(traffic, start=1):
        first = first if count > 1 else request.arrival_seconds
        last = request.arrival_seconds
    if count < 2 or last <= first:
        raise ValueError(
            f"the rate of {count} requests in {last - first} seconds is not known; it takes two, one after the other"
        )
    return (count - 1) / (last - first)
