"""Trains tiny-gpt's tokenizer: byte-level BPE in which every Han character stands alone before merging.

Byte-level, so that any text whatever can be encoded and comes back byte for byte. Han characters one by one, so that
"请解释什么是量子纠缠" and "请解释什么是黑洞" begin with the same six tokens. Without that, merges would glue a question
to its subject, and two prompts that look alike would share no prefix.

It does not know the model; it knows that token 0 is the end of text.
"""

from __future__ import annotations

import itertools

from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from lessons.lesson00_tiny_gpt.corpus import Corpus

END_OF_TEXT = "<|endoftext|>"
VOCAB_SIZE = 2048
# Han characters; CJK punctuation; full-width forms; the quotation marks, dash and ellipsis that Chinese text uses.
ALONE = r"[\p{Han}\x{3000}-\x{303F}\x{FF00}-\x{FFEF}\x{2014}\x{2018}-\x{201D}\x{2026}]"


def train_tokenizer(seed: int, num_documents: int = 6000, vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Trains on the corpus's first documents; the same arguments give the same file, byte for byte."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(ALONE), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),  # all 256 bytes, seen or not
        show_progress=False,
    )
    documents = itertools.islice(Corpus(seed), num_documents)
    tokenizer.train_from_iterator((document.text for document in documents), trainer)
    return tokenizer


def end_of_text_id(tokenizer: Tokenizer) -> int:
    """Returns the end-of-text token's id.

    Raises:
        ValueError: If the tokenizer has no such token.
    """
    token_id = tokenizer.token_to_id(END_OF_TEXT)
    if token_id is None:
        raise ValueError(f"end_of_text_id: the tokenizer has no token {END_OF_TEXT!r}; expected one")
    return int(token_id)
