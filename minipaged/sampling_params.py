"""SamplingParams: how the user wants the next tokens chosen, and when the answer is over.

Knows nothing of text: stop strings are carried here and watched for where there is a tokenizer (`minipaged/llm.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from operator import index
from typing import Any

#: Each answer is an object of its own from the start; a mistyped n must not fill the memory with them.
MOST_ANSWERS = 16_384


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """What one request asks of the sampler. The names are vLLM's.

    Args:
        n: answers to write for the prompt, 1 to `MOST_ANSWERS`. They differ from each other (unless greedy).
        max_tokens: tokens to generate at most, at least 1; the end-of-text token counts.
        temperature: 0 is greedy: the most probable token, the lowest id on a tie.
        top_k: draw among the k most probable tokens; None draws among all.
        top_p: draw among the fewest most probable tokens whose probabilities sum to at least this, in (0, 1].
        seed: same seed, same answer, whatever else runs. None takes one from the engine's seed and the request's id.
        stop: strings that end the answer; neither they nor anything after them is in the text.
        stop_token_ids: tokens that end the answer and stay in `token_ids`.
        ignore_eos: go on after the model's own end-of-text token.
        logprobs: None for none, 0 for the chosen token's log-probability, k for that and the k most probable ones.

    Raises:
        ValueError: a value is outside what is said above; the message names it.
    """

    n: int = 1
    max_tokens: int = 128
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None

    def __post_init__(self) -> None:
        # One string, or any list, is what users write; a tuple is what a frozen, hashable object holds.
        put = partial(object.__setattr__, self)
        put("stop", (self.stop,) if isinstance(self.stop, str) else self._items("stop"))
        if not all(isinstance(text, str) and text for text in self.stop):
            raise ValueError(f"SamplingParams: stop is {self.stop!r}; it must be strings that are not empty")
        put("stop_token_ids", tuple(_int("stop_token_ids", item, 0) for item in self._items("stop_token_ids")))
        for name, least in (("n", 1), ("max_tokens", 1), ("top_k", 1), ("logprobs", 0), ("seed", 0)):
            value = getattr(self, name)
            if value is not None or name in ("n", "max_tokens"):
                put(name, _int(name, value, least))
        if self.n > MOST_ANSWERS:
            raise ValueError(f"SamplingParams: n is {self.n}; it must be at most {MOST_ANSWERS}")
        for name in ("temperature", "top_p"):
            put(name, _float(name, getattr(self, name)))
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"SamplingParams: temperature is {self.temperature!r}; it must be 0 (greedy) or above")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"SamplingParams: top_p is {self.top_p!r}; it must be above 0 and at most 1")
        if not isinstance(self.ignore_eos, bool):
            raise ValueError(f"SamplingParams: ignore_eos is {self.ignore_eos!r}; it must be True or False")

    def _items(self, name: str) -> tuple[Any, ...]:
        value = getattr(self, name)
        if value is None:
            return ()
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise ValueError(f"SamplingParams: {name} is {value!r}; it must be a list")
        return tuple(value)

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> SamplingParams:
        """As the constructor, for options that a user wrote.

        Args:
            options: by their names, any number of them.

        Raises:
            ValueError: an unknown option; the message lists the known ones. Or a value that makes no sense.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ValueError(f"SamplingParams: unknown option {name!r}; known are {', '.join(known)}")
        return cls(**options)


def _int(name: str, value: Any, least: int) -> int:
    """An int, or what numpy and torch have for one."""
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if number < least:
        raise ValueError(f"SamplingParams: {name} is {value!r}; it must be a whole number of at least {least}")
    return number


def _float(name: str, value: Any) -> float:
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"SamplingParams: {name} must be a number that a float can hold") from None
