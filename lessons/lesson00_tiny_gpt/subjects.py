"""`Subject`: one thing that tiny-gpt can explain, in one language, read from `text/*.json`.

It knows the files and what a subject must be like. It does not know questions, answers or chance.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
TEXT_FOLDER = Path(__file__).parent / "text"
SUBJECT_FILES = ("sky_and_matter", "earth_and_weather", "living_things", "made_by_people")


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject in one language.

    Attributes:
        id: The same in every language, such as "black_holes".
        language: "en" or "zh".
        name: As it stands in a question: "a black hole", "黑洞".
        verb: "is" or "are" in English; empty in Chinese.
        sentences: What there is to say, in an order in which every increasing subset reads well.
    """

    id: str
    language: Language
    name: str
    verb: str
    sentences: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.sentences)) != len(self.sentences):
            raise ValueError(f"Subject {self.id!r} ({self.language}): a sentence occurs twice; expected each once")


def load_subjects(language: Language, folder: Path = TEXT_FOLDER) -> tuple[Subject, ...]:
    """Reads all subjects of a language, in the order of the files.

    Raises:
        ValueError: If two subjects have one name or one id.
    """
    subjects = []
    for file in SUBJECT_FILES:
        for entry in json.loads((folder / f"{file}.json").read_text(encoding="utf-8")):
            text = entry[language]
            verb = text.get("verb", "")
            subjects.append(Subject(entry["id"], language, text["name"], verb, tuple(text["sentences"])))
    for what in ("id", "name"):
        values = [getattr(subject, what) for subject in subjects]
        if len(set(values)) != len(values):
            raise ValueError(f"load_subjects: {language} subjects share a {what}; expected each once in {values}")
    return tuple(subjects)
