"""Writes continuations of many prompts at once with the trainer's own module.

This is the naive way on purpose: every prompt is padded to the longest, and every row keeps its room until the last row
is done. It knows nothing of blocks; the rest of the course is about doing better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from lessons.lesson00_tiny_gpt.tokenizer_training import END_OF_TEXT
from lessons.lesson00_tiny_gpt.trainable_gpt import Past, TrainableGPT


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a model wrote after a prompt; the end-of-text token is not among the tokens."""

    text: str
    token_ids: tuple[int, ...]
    ended: bool


@torch.inference_mode()
def generate(
    model: TrainableGPT,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    *,
    max_tokens: int = 256,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[Continuation]:
    """Continues each prompt until the end-of-text token or `max_tokens`.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        prompts: At least one.
        max_tokens: Tokens written at most, per prompt.
        temperature: 0 is greedy.
        seed: Of the draws; unused when greedy.
    """
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    encoded = [tokenizer.encode(prompt).ids for prompt in prompts]
    lengths = torch.tensor([len(ids) for ids in encoded])  # (batch,)
    longest = int(lengths.max())
    padding = longest - lengths  # (batch,)
    # Padding goes to the left, so that all rows end, and continue, in the same column.
    tokens = torch.tensor([[end_of_text] * (longest - len(ids)) + ids for ids in encoded])  # (batch, longest)
    columns = torch.arange(longest)
    positions = (columns - padding[:, None]).clamp(min=0)  # (batch, longest)
    may_look = (columns[None, :] <= columns[:, None]) & (columns >= padding[:, None])[:, None, :]  # (batch, rows, keys)
    may_look |= torch.eye(longest, dtype=torch.bool)  # a padding row sees itself: a softmax over nothing is NaN
    mask = may_look[:, None]  # (batch, 1, rows, keys)

    generator = torch.Generator().manual_seed(seed)
    past: Past = []
    written: list[list[int]] = [[] for _ in prompts]
    ended = [False] * len(prompts)
    for _ in range(max_tokens):
        logits = model(tokens, positions, past, mask)[:, -1]  # (batch, vocab_size)
        if temperature == 0.0:
            chosen = logits.argmax(-1, keepdim=True)  # (batch, 1)
        else:
            chosen = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
        for row, token in enumerate(chosen[:, 0].tolist()):
            if not ended[row]:
                ended[row] = token == end_of_text
                if not ended[row]:
                    written[row].append(token)
        if all(ended):
            break
        tokens, positions = chosen, positions[:, -1:] + 1  # (batch, 1) each
        mask = torch.cat([mask[:, :, -1:], torch.ones(len(prompts), 1, 1, 1, dtype=torch.bool)], dim=-1)
    return [Continuation(tokenizer.decode(ids), tuple(ids), done) for ids, done in zip(written, ended, strict=True)]
