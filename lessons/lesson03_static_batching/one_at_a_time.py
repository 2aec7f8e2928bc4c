"""One request at a time, with a cache: the naive way to serve several people. The next one waits for the last to end.

A real one: with a single user there is no better. It is a batch of one, so it needs neither padding nor a mask, and its
result has the same counts as that of a larger batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from minipaged.model.gpt import GPT
from minipaged.model.static_batch import StaticResult, generate_static
from minipaged.sampling_params import SamplingParams


def serve_one_at_a_time(model: GPT, prompts: Sequence[Sequence[int]], params: Sequence[SamplingParams]) -> StaticResult:
    """Answers the prompts in their order, each alone.

    Args:
        model: the network.
        prompts: token ids, at least one each.
        params: one for each.
    """
    return generate_static(model, prompts, params, batch_size=1)
