"""Texts: what lesson 0 learns from and what it is examined on, as token ids, with the bits that the generator spent.

All of it is questions and answers in one language, the larger half of what tiny-gpt was trained on: little enough to be
learnt in half a minute. Knows no model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

from tokenizers import Tokenizer

from lessons.lesson00_tiny_gpt.corpus import Corpus, Document
from lessons.lesson00_tiny_gpt.factory import ASSETS
from lessons.lesson00_tiny_gpt.judge import JUDGE_SEED
from lessons.lesson00_tiny_gpt.questions import QUESTIONS, START_WEIGHTS, STEP_WEIGHTS
from lessons.lesson00_tiny_gpt.subjects import Language, load_subjects
from lessons.lesson00_tiny_gpt.tokenizer_training import end_of_text_id

TRAINING_SEED = 4


@dataclass(frozen=True, slots=True)
class Texts:
    """Two sets of documents from one generator, with the shipped tokenizer.

    Attributes:
        language: Of all documents.
        tokenizer: Text to token ids and back.
        training: Token ids of each document, without end-of-text tokens.
        held_out: The same, of another seed.
        floor_bits_per_token: -log2 of the held-out documents' probability ÷ their tokens, ends of text included.
        num_repeated: Held-out documents that chance wrote into the training text, too.
        example: The first held-out document.
    """

    language: Language
    tokenizer: Tokenizer
    training: list[list[int]]
    held_out: list[list[int]]
    floor_bits_per_token: float
    num_repeated: int
    example: Document

    @property
    def vocab_size(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @property
    def end_of_text(self) -> int:
        return end_of_text_id(self.tokenizer)

    @property
    def num_training_tokens(self) -> int:
        return num_predictions(self.training)

    @property
    def num_held_out_tokens(self) -> int:
        return num_predictions(self.held_out)


def num_predictions(documents: list[list[int]]) -> int:
    """Tokens of some documents, the end-of-text token behind each included."""
    return sum(len(document) + 1 for document in documents)


def make_texts(language: Language, num_training: int, num_held_out: int) -> Texts:
    """Writes and encodes documents; the same arguments give the same texts on every machine."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "tokenizer.json"))

    def written(seed: int, number: int) -> list[Document]:
        return list(islice(Corpus(seed, kinds=("answer",), languages=(language,)), number))

    def encoded(documents: list[Document]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch([document.text for document in documents])]

    training, held_out = written(TRAINING_SEED, num_training), written(JUDGE_SEED, num_held_out)
    known = {document.text for document in training}
    held_out_ids = encoded(held_out)
    bits = -sum(document.log2_probability for document in held_out)
    return Texts(
        language,
        tokenizer,
        encoded(training),
        held_out_ids,
        bits / num_predictions(held_out_ids),
        sum(document.text in known for document in held_out),
        held_out[0],
    )


def reckoned_bits_per_document(language: Language) -> float:
    """What the generator's choices for one document cost on average, reckoned from its rules instead of its log.

    Not quite exact: near the end of a subject's sentences there are fewer choices, or none. Few documents come there.
    """
    subject = math.log2(len(load_subjects(language)))
    form = math.log2(len(QUESTIONS[language]))
    manner = entropy_bits((0.1, 0.9)) + entropy_bits((1 / 3, 2 / 3)) if language == "en" else entropy_bits((0.5, 0.5))
    length = math.log2(5)  # 3 to 7 sentences, each as likely
    sentences = entropy_bits(START_WEIGHTS) + 4 * entropy_bits(STEP_WEIGHTS)  # 5 on average, so 4 steps
    return subject + form + manner + length + sentences


def entropy_bits(probabilities: tuple[float, ...]) -> float:
    """The mean of -log2 P of one choice."""
    return -sum(p * math.log2(p) for p in probabilities)
