"""Stories about an animal: whom it meets, what it loses, what it learns.

The free choices stand at the beginning, in the prompt. The plot, the friend, the rival and the thing that is lost
follow from the animal and its trait, and are referred to until the end. A model can only learn what follows from
something; a name drawn afresh in the last sentence would teach it nothing, and its most probable story would be the
same every time.

The words are in `text/stories.json`; this module knows their order.
"""

from __future__ import annotations

import json
from typing import Any

from lessons.lesson00_tiny_gpt.draw import Draw
from lessons.lesson00_tiny_gpt.questions import SEPARATOR
from lessons.lesson00_tiny_gpt.subjects import TEXT_FOLDER, Language

FULL_STOP: dict[Language, str] = {"en": ".", "zh": "。"}
# The first wording of a line is the usual one. Two wordings, or three, of which an empty one leaves the line out.
WORDING_WEIGHTS = ((1.0,), (0.75, 0.25), (0.7, 0.2, 0.1))
# Where the prompt names no trait, each animal has a usual one and seldom another.
TRAIT_WEIGHTS = (0.82, 0.06, 0.06, 0.06)

_TEXT: dict[Language, dict[str, Any]] = json.loads((TEXT_FOLDER / "stories.json").read_text(encoding="utf-8"))


def story(draw: Draw, language: Language) -> str:
    """Writes one document: the request for a story, a newline, the story."""
    text = _TEXT[language]
    number = draw.choice(range(len(text["animals"])))
    slots = dict(text["animals"][number]) | draw.choice(text["names"])
    with_trait = draw.chance(0.5)
    traits = text["traits"]
    usual_first = [traits[(number + i) % len(traits)] for i in range(len(traits))]
    slots["trait"] = draw.choice(traits) if with_trait else draw.weighted(usual_first, TRAIT_WEIGHTS)
    slots["Name"] = slots["name"]
    slots["They"] = slots.get("they", "").capitalize()

    prompt = text["prompts"][with_trait].format(**slots)
    if draw.chance(0.5):
        prompt += FULL_STOP[language]
    plot = text["plots"][(number + traits.index(slots["trait"])) % len(text["plots"])]
    sentences = []
    for line in (text["opening"], "character", *plot):
        wordings = text[line][slots["trait"]] if isinstance(line, str) else line
        wording = draw.weighted(wordings, WORDING_WEIGHTS[len(wordings) - 1])
        if wording:
            sentences.append(wording.format(**slots))
    return prompt + "\n" + SEPARATOR[language].join(sentences)
