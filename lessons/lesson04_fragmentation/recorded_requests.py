"""Recorded requests: how long the prompts and the answers of some traffic were. Lengths only; no text is needed here.

They are made, with a seed, to the mean lengths that the PagedAttention paper (arXiv 2309.06180, figure 11) reports of
two data sets, or read from a CSV file in the format of Azure's public inference traces.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request of the past.

    Args:
        prompt: tokens of its prompt, at least 1.
        answer: tokens of its answer, its end-of-text token included, at least 1.
    """

    prompt: int
    answer: int


def made_requests(
    count: int, mean_prompt: float, mean_answer: float, *, seed: int, spread: float = 0.9
) -> list[RecordedRequest]:
    """Requests whose lengths are log-normal: many short ones, a few that are very long.

    Prompts are at most 1024 tokens and answers at most 1024, so that all fit in a context of 2048.

    Args:
        count: how many.
        mean_prompt, mean_answer: the means that they have, but for rounding.
        seed: same seed, same requests.
        spread: standard deviation of a length's logarithm.
    """
    random = Random(seed)
    noise = NormalDist()
    prompts = _lengths(mean_prompt, [exp(spread * noise.inv_cdf(1 - random.random())) for _ in range(count)], 1024)
    answers = _lengths(mean_answer, [exp(spread * noise.inv_cdf(1 - random.random())) for _ in range(count)], 1024)
    return [RecordedRequest(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


def like_sharegpt(count: int) -> list[RecordedRequest]:
    """Conversations: prompts of 161 tokens and answers of 338 in the mean."""
    return made_requests(count, 161, 338, seed=4)


def like_alpaca(count: int) -> list[RecordedRequest]:
    """Short instructions: prompts of 19 tokens and answers of 58 in the mean."""
    return made_requests(count, 19, 58, seed=4)


def read_requests(path: Path, count: int, context: int) -> list[RecordedRequest]:
    """The first requests of a trace that fit in the context.

    Args:
        path: a CSV file with the columns `ContextTokens` and `GeneratedTokens`.
        count: how many at most.
        context: tokens that prompt and answer may have together.

    Raises:
        ValueError: the file cannot be read, or has no such columns, or no request that fits.
    """
    found: list[RecordedRequest] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                request = RecordedRequest(int(row["ContextTokens"]), int(row["GeneratedTokens"]))
                if request.prompt >= 1 and request.answer >= 1 and request.prompt + request.answer <= context:
                    found.append(request)
                if len(found) == count:
                    break
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} must be CSV with whole numbers as ContextTokens and GeneratedTokens") from None
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
