"""Recorded requests: how long the prompts and the answers of some traffic were. Lengths only; no text is needed here.

They are made, with a seed, to the mean lengths that the PagedAttention paper (arXiv 2309.06180, figure 11) reports of
two data sets, or read from a recorded trace, in one of the formats of `minipaged/traffic.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import exp
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean

from minipaged.traffic import ALPACA, SHAREGPT, Mix, read_traffic


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request of the past.

    Args:
        prompt: tokens of its prompt, at least 1.
        answer: tokens of its answer, its end-of-text token included, at least 1.
    """

    prompt: int
    answer: int


def made_requests(count: int, mix: Mix, *, seed: int, spread: float = 0.9) -> list[RecordedRequest]:
    """Requests whose lengths are log-normal: many short ones, a few that are very long.

    Prompts are at most 1024 tokens and answers at most 1024, so that all fit in a context of 2048.

    Args:
        count: how many.
        mix: the means that just these requests have, but for rounding.
        seed: same seed, same requests.
        spread: standard deviation of a length's logarithm.
    """
    random = Random(seed)
    noise = NormalDist()
    prompts = _lengths(mix.mean_prompt, [exp(spread * noise.inv_cdf(1 - random.random())) for _ in range(count)], 1024)
    answers = _lengths(mix.mean_output, [exp(spread * noise.inv_cdf(1 - random.random())) for _ in range(count)], 1024)
    return [RecordedRequest(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


def like_sharegpt(count: int) -> list[RecordedRequest]:
    """Conversations: prompts of 161 tokens and answers of 338 in the mean."""
    return made_requests(count, SHAREGPT, seed=4)


def like_alpaca(count: int) -> list[RecordedRequest]:
    """Short instructions: prompts of 19 tokens and answers of 58 in the mean."""
    return made_requests(count, ALPACA, seed=4)


def read_requests(path: Path, count: int, context: int) -> list[RecordedRequest]:
    """The first requests of a trace that fit in the context.

    Args:
        path: see `read_traffic`.
        count: how many at most.
        context: tokens that prompt and answer may have together.

    Raises:
        ValueError: the file cannot be read, a line of it is no request, or no request fits.
    """
    recorded = (RecordedRequest(len(r.prompt_token_ids), r.num_output) for r in read_traffic(path))
    found = list(islice((r for r in recorded if r.prompt + r.answer <= context), count))
    if not found:
        raise ValueError(f"{path} has no request whose prompt and answer fit in {context} tokens")
    return found


def mean(requests: list[RecordedRequest], length: Callable[[RecordedRequest], float]) -> float:
    """The mean of a length over requests."""
    return fmean(length(request) for request in requests)


def _lengths(wanted: float, factors: list[float], longest: int) -> list[int]:
    """Whole lengths in the ratio of `factors`, cut at 1 and `longest`, with the mean that is wanted."""
    low, high = 0.0, float(longest)
    for _ in range(60):  # the mean grows with the scale, so halving the interval finds it
        scale = (low + high) / 2
        lengths = [min(max(round(scale * factor), 1), longest) for factor in factors]
        low, high = (scale, high) if fmean(lengths) < wanted else (low, scale)
    return lengths
