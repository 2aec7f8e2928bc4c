"""Lesson 0's figures: what each way to predict needs per token, of the same held-out text. Prints nothing.

From those that look at nothing to the generator itself, which cannot be beaten: it knows with which probability it
makes its choices.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from types import ModuleType

from lessons.lesson00_tiny_gpt import solution
from lessons.lesson00_tiny_gpt.bigram_table import SMOOTHING, BigramTable
from lessons.lesson00_tiny_gpt.factory import ASSETS, second_course
from lessons.lesson00_tiny_gpt.generation import generate
from lessons.lesson00_tiny_gpt.judge import bits_per_token
from lessons.lesson00_tiny_gpt.learning_curve import means
from lessons.lesson00_tiny_gpt.model_folder import load_model_folder
from lessons.lesson00_tiny_gpt.questions import QUESTIONS, fill
from lessons.lesson00_tiny_gpt.small_gpt import BATCH_DOCUMENTS
from lessons.lesson00_tiny_gpt.subjects import load_subjects
from lessons.lesson00_tiny_gpt.texts import Texts, num_predictions, reckoned_bits_per_document
from lessons.lesson00_tiny_gpt.tokenizer_training import END_OF_TEXT
from lessons.lesson00_tiny_gpt.trainable_gpt import TrainableGPT
from lessons.lesson00_tiny_gpt.training import TrainingPlan

ASKED_ABOUT = "black_holes"
SAMPLE_TOKENS = 60
SAMPLE_SEED = 1
SMALL_STEPS, FULL_STEPS = 60, 680
SMALL_HELD_OUT, FULL_HELD_OUT = 64, 256


@dataclass(frozen=True, slots=True)
class Row:
    """One way to predict the next token.

    Attributes:
        name: "bigram table".
        looks_at: "1 token".
        parameters: numbers that it is made of.
        training_tokens: tokens that it has learnt from.
        bits_per_token: of the held-out text.
    """

    name: str
    looks_at: str
    parameters: int
    training_tokens: int
    bits_per_token: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The bigram table, built and tried.

    Attributes:
        table: the table.
        seconds: that counting took.
        prompt: what was asked.
        answer: what it wrote.
        bits_per_token: of the held-out text.
    """

    table: BigramTable
    seconds: float
    prompt: str
    answer: str
    bits_per_token: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that lesson 0 measures.

    Attributes:
        rows: from uniform to the generator's own.
        num_held_out: documents that all of them were examined on.
        num_repeated: of these, also in the training text by chance.
        num_pairs: pairs that the table has seen.
        reckoned_floor: the floor, from the generator's rules instead of its log.
        reckoned_bigram: bits per token if all seen followers of a token were equally likely.
        curve: the small GPT's loss while it learns, averaged over neighbouring steps.
        answers: what each model wrote after the same question.
    """

    rows: list[Row]
    num_held_out: int
    num_repeated: int
    num_pairs: int
    reckoned_floor: float
    reckoned_bigram: float
    curve: list[float]
    answers: dict[str, str]


def num_documents(small: bool) -> tuple[int, int]:
    """Documents to learn from, and held-out ones."""
    if small:
        return SMALL_STEPS * BATCH_DOCUMENTS, SMALL_HELD_OUT
    return FULL_STEPS * BATCH_DOCUMENTS, FULL_HELD_OUT


def question(texts: Texts) -> str:
    """A question that the corpus asks, too; one with a question mark, which no document ends with."""
    subject = next(subject for subject in load_subjects(texts.language) if subject.id == ASKED_ABOUT)
    form = next(form for form in QUESTIONS[texts.language] if form.endswith(("?", "？")))
    return fill(form, subject)


def count(texts: Texts, code: ModuleType = solution) -> Counted:
    """Builds the table and tries it."""
    began = time.perf_counter()
    table = BigramTable(texts.training, texts.vocab_size, texts.end_of_text, code=code)
    seconds = time.perf_counter() - began
    prompt = question(texts)
    written = table.generate(texts.tokenizer.encode(prompt).ids, SAMPLE_TOKENS, SAMPLE_SEED)
    bits = table.bits_per_token(texts.held_out)
    return Counted(table, seconds, prompt, texts.tokenizer.decode(written), bits)


def unigram_bits_per_token(texts: Texts) -> float:
    """Bits per token for somebody who knows how frequent each token is, and not where in the text they are."""
    counts = Counter(token for document in texts.training for token in (*document, texts.end_of_text))
    total = counts.total() + SMOOTHING * texts.vocab_size
    bits = 0.0
    for document in texts.held_out:
        for token in (*document, texts.end_of_text):
            bits -= math.log2((counts[token] + SMOOTHING) / total)
    return bits / num_predictions(texts.held_out)


def answer(model: TrainableGPT, texts: Texts) -> str:
    """What a GPT writes after the question, always its most probable token."""
    [continuation] = generate(model, texts.tokenizer, [END_OF_TEXT + question(texts)], max_tokens=SAMPLE_TOKENS)
    return continuation.text


def shipped_training_tokens() -> int:
    """Tokens that the shipped model has read in the factory's two courses."""
    first = TrainingPlan()
    return sum(plan.batch_tokens * plan.steps for plan in (first, second_course(first)))


def compare(texts: Texts, counted: Counted, small_gpt: TrainableGPT, losses: list[float]) -> Figures:
    """Examines them all on the same text."""
    shipped, _ = load_model_folder(ASSETS)
    shipped.eval()
    held_out, end_of_text = texts.held_out, texts.end_of_text
    vocab_size, num_tokens = texts.vocab_size, texts.num_training_tokens
    rows = [
        Row("uniform", "nothing", 0, 0, math.log2(vocab_size)),
        Row("unigram table", "nothing", vocab_size, num_tokens, unigram_bits_per_token(texts)),
        Row("bigram table", "1 token", counted.table.num_pairs, num_tokens, counted.bits_per_token),
        Row("small GPT", "all before", small_gpt.num_parameters(), num_tokens,
            bits_per_token(small_gpt, held_out, end_of_text)),
        Row("shipped GPT", "all before", shipped.num_parameters(), shipped_training_tokens(),
            bits_per_token(shipped, held_out, end_of_text)),
        Row("floor", "its own choices", 0, 0, texts.floor_bits_per_token),
    ]  # fmt: skip
    return Figures(
        rows=rows,
        num_held_out=len(held_out),
        num_repeated=texts.num_repeated,
        num_pairs=counted.table.num_pairs,
        reckoned_floor=reckoned_floor(texts),
        reckoned_bigram=counted.table.followers_bits,
        curve=means(losses),
        answers={
            "bigram table": counted.answer,
            "small GPT": answer(small_gpt, texts),
            "shipped GPT": answer(shipped, texts),
        },
    )


def reckoned_floor(texts: Texts) -> float:
    """The floor in bits per token from the generator's rules and the mean length of a document."""
    return reckoned_bits_per_document(texts.language) * len(texts.held_out) / texts.num_held_out_tokens
