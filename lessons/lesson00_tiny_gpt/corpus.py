"""The corpus: an endless, seeded stream of documents, each with the probability with which it is written.

It mixes four kinds of document in two languages. Because every choice goes through `Draw`, and because no text can come
about in two ways, the probability of a document is exact, and so is the entropy of the corpus: no model can need
fewer bits per token than `floor_bits / tokens`.

It does not know tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lessons.lesson00_tiny_gpt.dialogues import dialogue
from lessons.lesson00_tiny_gpt.draw import Draw
from lessons.lesson00_tiny_gpt.poems import poem
from lessons.lesson00_tiny_gpt.questions import question_and_answer
from lessons.lesson00_tiny_gpt.stories import story
from lessons.lesson00_tiny_gpt.subjects import LANGUAGES, Language, load_subjects

Kind = Literal["answer", "story", "dialogue", "poem"]
# Shares of documents. Kinds differ in length, so these give about 60, 20, 15 and 5 % of the tokens.
KIND_WEIGHTS: dict[Kind, float] = {"answer": 0.72, "story": 0.095, "dialogue": 0.10, "poem": 0.085}


@dataclass(frozen=True, slots=True)
class Document:
    """A text, what it is, and log2 of the probability that the corpus's next document is exactly this text."""

    text: str
    kind: Kind
    language: Language
    log2_probability: float


class Corpus:
    """Writes documents; the same seed gives the same bytes on every machine.

    Args:
        seed: Different seeds give independent streams: one for training, another for validation.
        freely: Whether questions are also put in other words than the six forms; see `questions.ask`.
        kinds: Which kinds of document, with the weights that they have among all; their probabilities are then those
            of a corpus that holds nothing else.
        languages: Which languages, equally often.
    """

    def __init__(
        self,
        seed: int,
        *,
        freely: bool = False,
        kinds: Sequence[Kind] = tuple(KIND_WEIGHTS),
        languages: Sequence[Language] = LANGUAGES,
    ) -> None:
        self._freely = freely
        self._kinds = tuple(kinds)
        self._languages = tuple(languages)
        self._draw = Draw(seed)
        self._subjects = {language: load_subjects(language) for language in LANGUAGES}

    def __iter__(self) -> Iterator[Document]:
        """Yields documents without end."""
        while True:
            self._draw.reset()
            language = self._draw.choice(self._languages)
            kind = self._draw.weighted(self._kinds, [KIND_WEIGHTS[kind] for kind in self._kinds])
            text = self._write(kind, language)
            yield Document(text, kind, language, self._draw.log2_probability)

    def _write(self, kind: Kind, language: Language) -> str:
        if kind == "answer":
            return question_and_answer(self._draw, self._subjects[language], freely=self._freely)
        if kind == "dialogue":
            return dialogue(self._draw, self._subjects[language])
        if kind == "story":
            return story(self._draw, language)
        return poem(self._draw, language)
