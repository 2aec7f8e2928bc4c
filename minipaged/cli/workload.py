"""Workload: requests that arrive over time, read from JSON lines, one request a line.

    {"prompt": "What is tea?", "max_tokens": 48, "n": 2, "temperature": 0.8, "arrive_step": 12}

`prompt` is a text or a list of token ids. `arrive_step` is the step before which it comes (0 when left out), `title`
what a person is shown (the beginning of the prompt). Everything else is a field of `SamplingParams`; without a
`temperature`, one answer is greedy and several are varied. `workload.jsonl`, beside this file, is the built-in one.

Knows lines and what may stand in them; steps no engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minipaged.sampling_params import SamplingParams

BUILT_IN = Path(__file__).with_name("workload.jsonl")
VARIED_TEMPERATURE = 0.8  # of several answers, when the line says nothing
TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that is to come.

    Args:
        prompt: a text, or token ids.
        params: how to answer it.
        arrive_step: it is there before this step.
        title: a few words for a reader.
        origin: where it was read, such as "workload, line 3".
    """

    prompt: str | tuple[int, ...]
    params: SamplingParams
    arrive_step: int
    title: str
    origin: str


def read_workload(path: Path) -> list[Arrival]:
    """The requests of a file, in their order of arrival.

    Raises:
        ValueError: the file cannot be read, or a line of it is no request; the message names the line.
    """
    try:
        # At line feeds only: a JSON text may hold what other programs take for the end of a line, such as U+2028.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"the workload {path} cannot be read: {reason}") from None
    try:
        arrivals = parse_workload(lines)
    except ValueError as error:
        raise ValueError(f"the workload {path}: {error}") from None
    if path == BUILT_IN:  # its lines say nothing to somebody who never saw them
        return [replace(arrival, origin="the built-in workload") for arrival in arrivals]
    return arrivals


def parse_workload(lines: Iterable[str]) -> list[Arrival]:
    """As `read_workload`, from lines; empty ones are skipped."""
    arrivals = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                arrivals.append(_arrival(line, f"workload, line {number}"))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    if not arrivals:
        raise ValueError("it has no request")
    return sorted(arrivals, key=lambda arrival: arrival.arrive_step)


def _arrival(line: str, origin: str) -> Arrival:
    try:
        fields = json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply to be a request") from None
    if not isinstance(fields, dict):
        raise ValueError(f"it is {_short(fields)}; it must be an object with at least a prompt")
    if "prompt" not in fields:
        raise ValueError(f"it has no prompt; it has {_short(list(fields))}")
    prompt = fields.pop("prompt")
    if isinstance(prompt, list) and prompt and all(_is_whole(token) for token in prompt):
        prompt = tuple(prompt)
    elif not (isinstance(prompt, str) and prompt):
        raise ValueError(f"the prompt is {_short(prompt)}; it must be a text or token ids, and not empty")
    if isinstance(prompt, str) and any("\ud800" <= character <= "\udfff" for character in prompt):
        raise ValueError("the prompt has a lone surrogate, which is no character")
    arrive_step = fields.pop("arrive_step", 0)
    if not _is_whole(arrive_step):
        raise ValueError(f"arrive_step is {_short(arrive_step)}; it must be a whole number of at least 0")
    title = fields.pop("title", prompt if isinstance(prompt, str) else f"{len(prompt)} token ids")
    if not isinstance(title, str):
        raise ValueError(f"the title is {_short(title)}; it must be a text")
    fields.setdefault("temperature", VARIED_TEMPERATURE if fields.get("n", 1) != 1 else 0.0)
    params = SamplingParams.from_dict(fields)
    return Arrival(prompt, params, arrive_step, " ".join(title.split())[:TITLE_CHARACTERS], origin)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, in which nothing may be said twice: of two prompts, one would be lost."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it says {next(name for name in names if names.count(name) > 1)!r} twice")
    return fields


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
