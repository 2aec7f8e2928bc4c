"""Request (what the user asked), Sequence (one answer being written), RequestOutput (what comes back).

Plain data: no text handling, no blocks, no tensors. Once made, only the scheduler changes a Request or a Sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from minipaged.plan import Draw, Sampling
from minipaged.sampling_params import SamplingParams

FinishReason = str  # "stop", "length", "cancelled" or "error"


class Status(Enum):
    """Where a sequence stands. A preempted one is WAITING again, with tokens already drawn."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False, slots=True)
class Request:
    """What a user submitted: one prompt, and how to go on from it.

    Args:
        id: the request's number in its engine, from 0; it is also its place in the order of arrival.
        prompt_token_ids: at least one token.
        params: how to sample, and when to stop.
        seed: the noise of its draws; the user's, or one made from the engine's seed and the id.
        stop_token_ids: tokens that end an answer: the user's and, unless ignored, the model's end-of-text.
        priority: lower goes first under the priority order; the default order does not look at it.
        cache_salt: requests share prefixes only with those of the same salt.
        sequences: its n answers. Until the prompt is computed only the first unfinished one is scheduled; then the
            others are forked from it.
        forked: the prompt is computed, and its sequences go on by themselves.
        num_ended: of its sequences, those that have ended.
        error: one line that says what went wrong, when a forward pass failed under it.
    """

    id: int
    prompt_token_ids: tuple[int, ...]
    params: SamplingParams
    seed: int
    stop_token_ids: frozenset[int] = frozenset()
    priority: int = 0
    cache_salt: str | None = None
    sequences: list[Sequence] = field(default_factory=list)
    forked: bool = False
    num_ended: int = 0
    error: str | None = None

    @property
    def finished(self) -> bool:
        """True when every one of its sequences has ended."""
        return self.num_ended == len(self.sequences)


@dataclass(eq=False, slots=True)
class Sequence:
    """One of a request's `n` answers. The scheduler owns it; the memory manager reads it.

    Convention: a token just drawn is in `tokens` but not yet in the cache, so before a decoding step
    `len(tokens) == num_computed + 1`. After a preemption `num_computed` is 0 and the drawn tokens are kept.

    Args:
        id: the sequence's number in its engine, from 0.
        request: whose answer it is.
        index: 0 … n - 1 within its request.
        tokens: prompt and answer; `Scheduler.commit` appends to it.
        sampling: what the sampler must know, ready to be put into a chunk.
        num_computed: tokens whose K and V are in the cache.
        status: where it stands.
        finish_reason: "stop", "length", "cancelled" or "error" once it has ended.
        draws: one per generated token.
        num_preemptions: how often its blocks were taken back.
        peak_computed: the most `num_computed` has ever been; below it, computing is recomputing.
        rank: place in the order policy, then age; set by `Scheduler.add`, then fixed.
    """

    id: int
    request: Request
    index: int
    tokens: list[int]
    sampling: Sampling
    num_computed: int = 0
    status: Status = Status.WAITING
    finish_reason: FinishReason | None = None
    draws: list[Draw] = field(default_factory=list)
    num_preemptions: int = 0
    peak_computed: int = 0
    rank: tuple[Any, int, int] = (0, 0, 0)

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.request.prompt_token_ids)

    @property
    def output_token_ids(self) -> list[int]:
        """The answer so far, without the prompt."""
        return self.tokens[self.num_prompt_tokens :]

    @property
    def age(self) -> tuple[int, int]:
        """(arrival, index): never changes, and smaller is older."""
        return (self.request.id, self.index)


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished (or still growing) answer, as vLLM's `CompletionOutput`.

    Args:
        index: which of the request's n answers it is, from 0.
        text: of the answer, without a stop string and what follows it; "" when the model has no tokenizer.
        token_ids: of the answer; a token that ended it is the last of them.
        finish_reason: "stop" (a stop string, a stop token or end of text), "length" (max_tokens), "cancelled" or
            "error"; None while it grows.
        cumulative_logprob: the log-probabilities of its tokens, summed.
        logprobs: one `Draw` per token when `SamplingParams.logprobs` asks for them, else None.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None
    cumulative_logprob: float
    logprobs: tuple[Draw, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What the user gets back for one prompt.

    Args:
        request_id: the request's number in its engine, from 0.
        prompt: the text; None when the prompt was given as token ids.
        prompt_token_ids: the prompt in tokens.
        outputs: the `SamplingParams.n` answers, by their index.
        finished: all answers have ended.
        error: one line that says what went wrong when a forward pass failed, else None.
    """

    request_id: int
    prompt: str | None
    prompt_token_ids: tuple[int, ...]
    outputs: tuple[Completion, ...]
    finished: bool
    error: str | None = None
