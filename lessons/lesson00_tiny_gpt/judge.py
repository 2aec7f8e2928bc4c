"""Judges a model folder: does it speak of what it is asked, does it stop, does it say more than one thing?

The questions are put in forms that the corpus never uses. A sentence of an answer counts as on the subject if, letter
for letter and punctuation aside, it is one of the asked subject's sentences; nothing else counts, however sensible.

It knows the subjects and the corpus. It does not know how the model was trained.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from lessons.lesson00_tiny_gpt.corpus import Corpus
from lessons.lesson00_tiny_gpt.dialogues import FRAMES
from lessons.lesson00_tiny_gpt.generation import Continuation, generate
from lessons.lesson00_tiny_gpt.model_folder import load_model_folder
from lessons.lesson00_tiny_gpt.questions import HELD_OUT_QUESTIONS, fill
from lessons.lesson00_tiny_gpt.subjects import LANGUAGES, Subject, load_subjects
from lessons.lesson00_tiny_gpt.tokenizer_training import end_of_text_id
from lessons.lesson00_tiny_gpt.trainable_gpt import TrainableGPT

JUDGE_SEED = 900_001  # of the held-out documents; training seeds are small numbers
SHOWN_PROMPTS = (
    "请解释什么是量子纠缠",
    "请解释什么是黑洞",
    "什么是彩虹？",
    "Please explain what quantum entanglement is.",
    "What is a black hole?",
    "Teach me something about gravity.",
    "请写一首关于春天的诗，模仿李白的风格",
    "请写一首关于春天的诗，模仿杜甫的风格",
    "Tell me a story about a brave fox named Mila.",
    "讲一个关于乌龟小雨的故事",
)
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+|\n")
_NOT_A_LETTER = re.compile(r"[\W_]+")
_NEAR = 0.8  # difflib ratio from which a sentence is a near match


@dataclass(frozen=True, slots=True)
class Answers:
    """The figures of one set of answers."""

    sentences: int
    on_subject: float
    near_subject: float  # on the subject or nearly so
    ended: float
    distinct_4grams: float


def letters(sentence: str) -> str:
    """Returns what is compared: letters and digits, in lower case."""
    return _NOT_A_LETTER.sub("", sentence).lower()


def split_sentences(text: str) -> list[str]:
    """Returns the comparable form of each sentence of a text."""
    return [piece for piece in (letters(part) for part in _SENTENCE_END.split(text)) if piece]


def distinct_share(answers: Sequence[Sequence[int]], n: int = 4) -> float:
    """Returns distinct n-grams ÷ n-grams, over all answers together."""
    grams = [tuple(ids[i : i + n]) for ids in answers for i in range(len(ids) - n + 1)]
    return len(set(grams)) / max(len(grams), 1)


def assess(continuations: Sequence[Continuation], subjects: Sequence[Subject]) -> Answers:
    """Compares each continuation with the sentences of the subject that was asked about."""
    exact = near = total = 0
    for continuation, subject in zip(continuations, subjects, strict=True):
        known = {piece for sentence in subject.sentences for piece in split_sentences(sentence)}
        for sentence in split_sentences(continuation.text):
            total += 1
            if sentence in known:
                exact += 1
                near += 1
            else:
                near += any(difflib.SequenceMatcher(None, sentence, other).ratio() >= _NEAR for other in known)
    return Answers(
        sentences=total,
        on_subject=exact / max(total, 1),
        near_subject=near / max(total, 1),
        ended=sum(continuation.ended for continuation in continuations) / len(continuations),
        distinct_4grams=distinct_share([continuation.token_ids for continuation in continuations]),
    )


@torch.inference_mode()
def bits_per_token(model: TrainableGPT, documents: Sequence[Sequence[int]], end_of_text: int) -> float:
    """Returns the mean of -log2 P over all tokens of some documents, the end-of-text token behind each included.

    Each document is predicted on its own, after an end-of-text token. None may be longer than the model's positions.

    Args:
        model: The model.
        documents: Token ids, without end-of-text tokens.
        end_of_text: The token's id.
    """
    encoded = sorted(([*document, end_of_text] for document in documents), key=len)
    nats = 0.0
    for first in range(0, len(encoded), 32):  # in order of length, so that little of a batch is padding
        rows = encoded[first : first + 32]
        longest = len(rows[-1])
        inputs = torch.tensor([[end_of_text, *row[:-1]] + [end_of_text] * (longest - len(row)) for row in rows])
        targets = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])  # (rows, longest)
        logits = model(inputs, torch.arange(longest).expand_as(inputs))  # (rows, longest, vocab_size)
        nats += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()
    return nats / math.log(2) / sum(len(row) for row in encoded)


def held_out_bits_per_token(model: TrainableGPT, tokenizer: Tokenizer, num_documents: int = 512) -> tuple[float, float]:
    """Returns (the model's bits per token, the generator's own) on documents of a seed that training does not use."""
    documents = list(islice(Corpus(JUDGE_SEED), num_documents))
    encoded = [encoding.ids for encoding in tokenizer.encode_batch([document.text for document in documents])]
    num_tokens = sum(len(ids) + 1 for ids in encoded)
    bits = bits_per_token(model, encoded, end_of_text_id(tokenizer))
    return bits, -sum(document.log2_probability for document in documents) / num_tokens


def _corpus_distinct_share(tokenizer: Tokenizer, num_answers: int) -> float:
    answers = (d.text.split("\n", 1)[1] for d in Corpus(JUDGE_SEED + 1) if d.kind == "answer")
    return distinct_share([tokenizer.encode("\n" + answer).ids for answer in islice(answers, num_answers)])


def judge(folder: Path, log: Callable[[str], None] = print) -> bool:
    """Judges a model folder, reports, and returns whether the model is accepted.

    Accepted is a model that, decoding greedily, has at least 90 % of its sentences on the asked subject, ends at least
    95 % of its answers within 256 tokens, and has at least half as many distinct 4-grams as the corpus's answers.
    """
    model, tokenizer = load_model_folder(folder)
    model.eval()
    bits, floor = held_out_bits_per_token(model, tokenizer)
    log(f"held-out documents: {bits:.4f} bits per token; the generator's own entropy is {floor:.4f}")

    subjects: list[Subject] = []
    prompts: list[str] = []
    dialogue_subjects: list[Subject] = []
    dialogue_prompts: list[str] = []
    for language in LANGUAGES:
        frame = FRAMES[language]
        for subject in load_subjects(language):
            questions = [fill(form, subject) for form in HELD_OUT_QUESTIONS[language]]
            prompts += questions
            subjects += [subject] * len(questions)
            dialogue_prompts.append(frame.system + frame.user + questions[0] + frame.assistant.rstrip())
            dialogue_subjects.append(subject)

    corpus_distinct = _corpus_distinct_share(tokenizer, len(prompts))
    log(f"answers to {len(prompts)} questions in held-out forms; the corpus's distinct 4-grams: {corpus_distinct:.3f}")
    greedy = assess(generate(model, tokenizer, prompts), subjects)
    sampled = assess(generate(model, tokenizer, prompts, temperature=0.8, seed=JUDGE_SEED), subjects)
    # In a dialogue the model goes on to write the user's next turn; a chat program stops at that newline.
    replies = [
        Continuation(reply.text.split("\n")[0], reply.token_ids, reply.ended or "\n" in reply.text)
        for reply in generate(model, tokenizer, dialogue_prompts)
    ]
    rows = (
        ("greedy", greedy),
        ("temperature 0.8", sampled),
        ("in a dialogue, greedy", assess(replies, dialogue_subjects)),
    )
    for name, figures in rows:
        log(
            f"{name:22s} on subject {figures.on_subject:6.1%}  (or nearly {figures.near_subject:6.1%})  "
            f"ended {figures.ended:6.1%}  distinct 4-grams {figures.distinct_4grams:.3f}  sentences {figures.sentences}"
        )
    for prompt, shown in zip(SHOWN_PROMPTS, generate(model, tokenizer, SHOWN_PROMPTS, max_tokens=512), strict=True):
        log(f"\n> {prompt}{shown.text}")

    wanted = (
        ("on subject", greedy.on_subject, 0.90),
        ("ended", greedy.ended, 0.95),
        ("distinct 4-grams, of the corpus's", greedy.distinct_4grams / corpus_distinct, 0.5),
    )
    failed = [f"{name} {got:.3f}, wanted at least {least}" for name, got, least in wanted if got < least]
    log("\naccepted" if not failed else "\nnot accepted: " + "; ".join(failed))
    return not failed
