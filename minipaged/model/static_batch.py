"""Static batches on a contiguous cache: what serving was before paging, and the demo's second baseline.

A batch is padded to its longest prompt, reserves the longest prompt + max_tokens for every member before the first word
is written, and runs until its slowest member ends; only then may the next batch begin. A batch of one is serial
generation with a cache. Everything that is wasted on the way is counted here, where it is caused.

It shares the network and the sampler with the real way, and knows neither blocks nor requests nor text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from minipaged.model.gpt import GPT, Attend
from minipaged.model.sampler import Sampler
from minipaged.plan import Draw, Sampling
from minipaged.sampling_params import SamplingParams

Pad = Callable[[Sequence[Sequence[int]]], tuple[list[list[int]], list[int]]]
Hide = Callable[[torch.Tensor, int], torch.Tensor]


def pad(prompts: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """Prompts made equally long, by padding behind their ends.

    A token's position is then its column. Padding leaves K and V in columns that no row looks at before the answer has
    overwritten them.

    Returns:
        The token ids, (batch, longest); and for each prompt the column of its last token.
    """
    longest = max(len(prompt) for prompt in prompts)
    return [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], [len(prompt) - 1 for prompt in prompts]


def hide(positions: torch.Tensor, columns: int) -> torch.Tensor:
    """Which columns each new token must not see: those behind its own.

    Args:
        positions: (batch, new), each new token's column.
        columns: of the cache, from the first, that are looked at in this step.

    Returns:
        (batch, new, columns), True where it must not look.
    """
    return torch.arange(columns, device=positions.device) > positions[:, :, None]


@dataclass(slots=True)
class StaticAnswer:
    """What one member of a batch wrote, one entry per generated token."""

    draws: list[Draw] = field(default_factory=list)
    finish_reason: str | None = None  # "stop" or "length" once it has ended

    @property
    def token_ids(self) -> list[int]:
        return [draw.token_id for draw in self.draws]


@dataclass(slots=True)
class StaticResult:
    """The answers in the prompts' order, and what they cost. "Summed" is over all steps, one forward pass each."""

    answers: list[StaticAnswer]
    batches: int = 0
    steps: int = 0
    padded_rows: int = 0  # of the prompts' rows, those that only make them equally long
    idle_rows: int = 0  # of the rows behind the prompts', those of members that had ended
    reserved_slots: int = 0  # token slots that the batch holds, summed
    live_slots: int = 0  # of them, those with a token of an unfinished member, summed
    peak_reserved_slots: int = 0
    sequence_steps: int = 0  # unfinished members, summed
    num_tokens_computed: int = 0  # rows through the model: padding and finished members included


def generate_static(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    params: SamplingParams | Sequence[SamplingParams],
    batch_size: int,
    *,
    max_slots: int | None = None,
    seed: int = 0,
    sampler: Sampler | None = None,
    on_batch: Callable[[int], None] | None = None,
    pad: Pad = pad,
    hide: Hide = hide,
) -> StaticResult:
    """Continues prompts batch by batch, in their order. Of `params`, `n` and `stop` are not looked at.

    Args:
        model: the network.
        prompts: token ids, at least one each.
        params: for all prompts, or one for each.
        batch_size: members of a batch at most.
        max_slots: token slots that a batch may reserve at most; None for no limit but `batch_size`.
        seed: stands in where `params.seed` is None.
        sampler: draws the tokens.
        on_batch: called after each batch with the number of prompts answered so far.
        pad: makes a batch's prompts equally long, as `pad` does.
        hide: says what a row must not see, as `hide` does.

    Raises:
        ValueError: an empty prompt, or one that fits neither the model's positions nor `max_slots`; nothing has run.
    """
    if isinstance(params, SamplingParams):
        params = [params] * len(prompts)
    if batch_size < 1:
        raise ValueError(f"generate_static: batch_size is {batch_size}; it must be at least 1")
    needs = []  # token slots of each prompt with its answer; the last token drawn is never fed back
    for number, (prompt, own) in enumerate(zip(prompts, params, strict=True)):
        if not prompt:
            raise ValueError(f"generate_static: prompt {number} is empty; it must hold at least one token")
        needs.append(len(prompt) + own.max_tokens - 1)
        for limit, what in ((model.config.max_positions, "positions of the model"), (max_slots, "slots of a batch")):
            if limit is not None and needs[-1] > limit:
                raise ValueError(f"generate_static: prompt {number} needs {needs[-1]} slots, above the {limit} {what}")

    result = StaticResult([StaticAnswer() for _ in prompts])
    samplings = [
        Sampling(p.temperature, p.top_k, p.top_p, p.logprobs or 0, seed if p.seed is None else p.seed, 0)
        for p in params
    ]
    with torch.inference_mode():
        for members in _batches(needs, batch_size, max_slots):
            batch = _Batch(
                model,
                sampler or Sampler(),
                [prompts[i] for i in members],
                [params[i] for i in members],
                [samplings[i] for i in members],
                [result.answers[i] for i in members],
                reserved=max(needs[i] for i in members),
                pad=pad,
                hide=hide,
            )
            while batch.active:
                batch.step(result)
            result.batches += 1
            if on_batch is not None:
                on_batch(members[-1] + 1)
    return result


def _batches(needs: Sequence[int], batch_size: int, max_slots: int | None) -> Iterator[list[int]]:
    """Cuts 0 … len(needs) - 1 into runs; each takes as many as fit when all reserve what the longest needs."""
    members: list[int] = []
    for i in range(len(needs)):
        grown = [*members, i]
        reserved = len(grown) * max(needs[member] for member in grown)
        if members and (len(grown) > batch_size or (max_slots is not None and reserved > max_slots)):
            yield members
            grown = [i]
        members = grown
    if members:
        yield members


class _Batch:
    """One batch from its padded prompts to the end of its slowest member."""

    def __init__(
        self,
        model: GPT,
        sampler: Sampler,
        prompts: list[Sequence[int]],
        params: list[SamplingParams],
        samplings: list[Sampling],
        answers: list[StaticAnswer],
        reserved: int,
        pad: Pad,
        hide: Hide,
    ) -> None:
        config = model.config
        self.model, self.sampler = model, sampler
        self.params, self.samplings, self.answers = params, samplings, answers
        self.active = list(range(len(prompts)))  # members that have not ended
        self.eos = set(config.eos_token_ids)

        self.hide = hide
        padded, self.last = pad(prompts)  # `last`: the position, which is also the column, of each one's newest token
        self.token_ids = torch.tensor(padded, device=model.device)  # (batch, new)
        self.positions = torch.arange(len(padded[0]), device=model.device).expand(len(prompts), -1)  # (batch, new)
        self.last_rows = list(self.last)  # the newest token's place among the new ones
        self.num_padded = sum(len(row) - len(prompt) for row, prompt in zip(padded, prompts, strict=True))
        self.cache = torch.zeros(
            (config.num_layers, 2, len(prompts), config.num_kv_heads, reserved, config.head_dim),
            dtype=model.dtype,
            device=model.device,
        )  # (layers, 2, batch, kv_heads, reserved, head_dim)

    def step(self, result: StaticResult) -> None:
        """One forward pass: the whole prompts at first, then one token of every member, ended or not."""
        batch, new = self.token_ids.shape
        hidden = self.model(self.token_ids.flatten(), self.positions.flatten(), self._attend())  # (batch * new, hidden)
        rows = torch.tensor([member * new + self.last_rows[member] for member in self.active])  # (active)
        logits = self.model.logits(hidden[rows.to(hidden.device)])  # (active, vocab)
        # The drawn token's position is the one after the last: `last` before it is moved on.
        positions = [self.last[member] + 1 for member in self.active]
        draws = self.sampler.sample(logits, [self.samplings[member] for member in self.active], positions)

        result.steps += 1
        result.num_tokens_computed += batch * new
        result.padded_rows += self.num_padded
        result.idle_rows += batch - len(self.active)
        result.sequence_steps += len(self.active)
        result.reserved_slots += batch * self.cache.shape[4]
        result.peak_reserved_slots = max(result.peak_reserved_slots, batch * self.cache.shape[4])
        result.live_slots += sum(positions)  # last + 1 tokens of each are in the cache

        for member, draw in zip(self.active, draws, strict=True):
            self._take(member, draw)
        self.active = [member for member in self.active if self.answers[member].finish_reason is None]
        # A member that has ended stays in the batch and is computed again at its last place, for nothing.
        newest = [[answer.draws[-1].token_id] for answer in self.answers]
        for member in self.active:
            self.last[member] += 1
        self.token_ids = torch.tensor(newest, device=self.model.device)  # (batch, 1)
        self.positions = torch.tensor(self.last, device=self.model.device)[:, None]  # (batch, 1)
        self.last_rows = [0] * batch
        self.num_padded = 0

    def _take(self, member: int, draw: Draw) -> None:
        answer, params = self.answers[member], self.params[member]
        answer.draws.append(draw)
        if draw.token_id in params.stop_token_ids or (draw.token_id in self.eos and not params.ignore_eos):
            answer.finish_reason = "stop"
        elif len(answer.draws) >= params.max_tokens:
            answer.finish_reason = "length"

    def _attend(self) -> Attend:
        """Attention for this step: new K and V go to their columns, then each row sees the columns up to its own."""
        batch, new = self.token_ids.shape
        members = torch.arange(batch, device=self.model.device)[:, None]  # (batch, 1)
        columns = int(self.positions.max()) + 1  # those that any row of this step can see
        future = self.hide(self.positions, columns)  # (batch, new, columns)

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            keys, values = self.cache[layer]  # each (batch, kv_heads, reserved, head_dim)
            # Two index tensors with a slice between them: the indexed dimensions come first, (batch, new).
            keys[members, :, self.positions] = key.unflatten(0, (batch, new))  # (batch, new, kv_heads, head_dim)
            values[members, :, self.positions] = value.unflatten(0, (batch, new))  # (batch, new, kv_heads, head_dim)

            group = query.shape[1] // key.shape[1]  # query heads that share a KV head
            wide = torch.float64 if query.dtype == torch.float64 else torch.float32
            # (batch, new, kv_heads, group, head_dim)
            q = query.to(wide).unflatten(0, (batch, new)).unflatten(2, (-1, group))
            k = keys[:, :, :columns].to(wide)  # (batch, kv_heads, columns, head_dim)
            v = values[:, :, :columns].to(wide)  # (batch, kv_heads, columns, head_dim)
            # (batch, kv_heads, group, new, columns)
            scores = torch.einsum("bqhgd,bhkd->bhgqk", q, k) * query.shape[-1] ** -0.5
            weights = scores.masked_fill(future[:, None, None], float("-inf")).softmax(dim=-1)  # as scores
            out = torch.einsum("bhgqk,bhkd->bqhgd", weights, v)  # (batch, new, kv_heads, group, head_dim)
            return out.to(query.dtype).flatten(2, 3).flatten(0, 1)  # (batch * new, num_heads, head_dim)

        return attend
