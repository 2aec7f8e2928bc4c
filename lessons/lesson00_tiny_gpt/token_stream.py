"""The corpus as one long row of tokens, and the windows that training cuts out of it.

`TokenStream` holds the tokens, where documents begin, and how many bits the generator itself spent on them.
`WindowSampler` decides what a training step sees. Neither knows the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
from tokenizers import Tokenizer
from torch import Tensor

from lessons.lesson00_tiny_gpt.corpus import Corpus
from lessons.lesson00_tiny_gpt.tokenizer_training import END_OF_TEXT

SHORT_WINDOW_TOKENS = 256
LONG_WINDOW_TOKENS = 1024
LONG_EVERY = 6  # one step in six has long windows
DOCUMENT_START_SHARE = 0.5  # of the windows, begin where a document does, as prompts do
_ENCODE_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class TokenStream:
    """Packed documents, each followed by the end-of-text token.

    Attributes:
        tokens: (num_tokens,) int64.
        starts: (num_documents,) int64, the index of each document's first token.
        floor_bits_per_token: -log2 of the documents' probability ÷ num_tokens: what a perfect model would need.
    """

    tokens: Tensor
    starts: Tensor
    floor_bits_per_token: float


def make_token_stream(seed: int, tokenizer: Tokenizer, at_least_tokens: int, *, freely: bool = False) -> TokenStream:
    """Writes documents from a seed and packs them until there are enough tokens."""
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    pieces: list[Tensor] = []
    lengths: list[int] = []
    bits = 0.0
    documents = iter(Corpus(seed, freely=freely))
    while sum(lengths) < at_least_tokens:
        batch = list(islice(documents, _ENCODE_AT_ONCE))
        bits -= sum(document.log2_probability for document in batch)
        for encoding in tokenizer.encode_batch_fast([document.text for document in batch]):
            pieces.append(torch.tensor([*encoding.ids, end_of_text], dtype=torch.int64))
            lengths.append(len(encoding.ids) + 1)
    ends = torch.tensor(lengths).cumsum(0)
    return TokenStream(torch.cat(pieces), ends - torch.tensor(lengths), bits / sum(lengths))


class WindowSampler:
    """Cuts the batch of each step out of a stream; step and seed determine it, so a resumed run sees the same batches.

    Args:
        stream: What to cut from.
        seed: Which windows.
        batch_tokens: Tokens per batch, a multiple of 1024.
        num_positions: How many positions the model has.
    """

    def __init__(self, stream: TokenStream, seed: int, batch_tokens: int, num_positions: int = 1024) -> None:
        if batch_tokens % LONG_WINDOW_TOKENS:
            raise ValueError(f"WindowSampler: got {batch_tokens=}; expected a multiple of {LONG_WINDOW_TOKENS}")
        self._stream = stream
        self._seed = seed
        self._batch_tokens = batch_tokens
        self._num_positions = num_positions

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Returns (inputs, targets, positions), each (rows, window) int64.

        A window in mid-stream gets positions from a random offset on, so that every position embedding is trained and
        the model learns to look at distances. A window at a document's start begins at position 0; half of those begin
        with the end-of-text token before the document, which is how a model may be started without a prompt.
        """
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + step)
        window = LONG_WINDOW_TOKENS if step % LONG_EVERY == LONG_EVERY - 1 else SHORT_WINDOW_TOKENS
        rows = self._batch_tokens // window
        last_begin = len(self._stream.tokens) - window - 1

        def uniform(end: int) -> Tensor:
            return torch.randint(end, (rows,), generator=generator)  # (rows,)

        def coin(probability: float) -> Tensor:
            return torch.rand(rows, generator=generator) < probability  # (rows,)

        document_begin = self._stream.starts[uniform(len(self._stream.starts))] - coin(0.5).long()  # (rows,)
        at_start = coin(DOCUMENT_START_SHARE)
        begin = torch.where(at_start, document_begin.clamp(0, last_begin), uniform(last_begin + 1))
        offset = torch.where(at_start, 0, uniform(self._num_positions - window + 1))  # (rows,)
        cut = self._stream.tokens[begin[:, None] + torch.arange(window + 1)]  # (rows, window + 1)
        positions = offset[:, None] + torch.arange(window)  # (rows, window)
        return cut[:, :-1], cut[:, 1:], positions
