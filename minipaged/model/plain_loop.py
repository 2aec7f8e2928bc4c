"""The naive way to generate: no cache at all, the whole sequence through the model again for every token.

The oracle of the engine's tests and the baseline of the demo. It shares the network and the sampler with the real way
and nothing else: it does not know of blocks, steps or other sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from minipaged.model.gpt import GPT, full_attention
from minipaged.model.sampler import Sampler
from minipaged.plan import Draw, Sampling
from minipaged.sampling_params import SamplingParams


@dataclass(slots=True)
class PlainAnswer:
    """What the plain loop wrote, one entry per generated token.

    Args:
        draws: the tokens.
        margins: best logit minus second best of each; where it is small, rounding may decide.
        finish_reason: "length" or "stop".
        num_tokens_computed: rows through the model; with a cache it would be prompt + answer - 1.
    """

    draws: list[Draw] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    finish_reason: str = "length"
    num_tokens_computed: int = 0

    @property
    def token_ids(self) -> list[int]:
        """The tokens alone."""
        return [draw.token_id for draw in self.draws]


def generate_plain(
    model: GPT,
    prompt_token_ids: Sequence[int],
    params: SamplingParams,
    *,
    seed: int = 0,
    index: int = 0,
    sampler: Sampler | None = None,
) -> PlainAnswer:
    """Continues one prompt. Of `params`, `n` and `stop` are not looked at: it is one answer, and tokens only.

    Args:
        model: the network; `full_attention` takes the place of the cache.
        prompt_token_ids: at least one.
        params: temperature, top_k, top_p, max_tokens, stop_token_ids, ignore_eos, logprobs, seed.
        seed: stands in where `params.seed` is None.
        index: which of the prompt's n answers this is.
        sampler: draws the tokens; our own when None.

    Returns:
        The answer; a token that ends it is its last.

    Raises:
        ValueError: an empty prompt, or `prompt + max_tokens - 1` tokens do not fit the model's positions.
    """
    tokens = list(prompt_token_ids)
    needed, positions = len(tokens) + params.max_tokens - 1, model.config.max_positions
    if not tokens:
        raise ValueError("generate_plain: the prompt is empty; it must hold at least one token")
    if needed > positions:
        raise ValueError(f"generate_plain: prompt and answer need {needed} positions; the model has {positions}")
    sampler = sampler or Sampler()
    sampling = Sampling(
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        num_top_logprobs=params.logprobs or 0,
        seed=seed if params.seed is None else params.seed,
        index=index,
    )
    stops = set(params.stop_token_ids) | (set() if params.ignore_eos else set(model.config.eos_token_ids))

    answer = PlainAnswer()
    with torch.inference_mode():
        while len(answer.draws) < params.max_tokens:
            token_ids = torch.tensor(tokens, device=model.device)  # (tokens)
            where = torch.arange(len(tokens), device=model.device)  # (tokens)
            hidden = model(token_ids, where, full_attention)  # (tokens, hidden)
            logits = model.logits(hidden[-1:])  # (1, vocab)
            # The drawn token's position is the one after the last: len(tokens), before the append.
            (draw,) = sampler.sample(logits, [sampling], [len(tokens)])
            best = logits[0].topk(min(2, logits.shape[1])).values.tolist()
            answer.draws.append(draw)
            answer.margins.append(best[0] - best[-1])
            answer.num_tokens_computed += len(tokens)
            tokens.append(draw.token_id)
            if draw.token_id in stops:
                answer.finish_reason = "stop"
                break
    return answer
