"""Poems of four lines about a season, after one of two poets.

The lines are in `text/poems.json`: eight for each season, poet and language, written for this corpus and quoted from
nobody. A poem is an increasing walk of four of the eight.
"""

from __future__ import annotations

import json
from typing import Any

from lessons.lesson00_tiny_gpt.draw import Draw
from lessons.lesson00_tiny_gpt.stories import FULL_STOP
from lessons.lesson00_tiny_gpt.subjects import TEXT_FOLDER, Language

NUM_LINES = 4
# How many lines the walk passes over before the next one that it takes.
SKIP_WEIGHTS = (0.7, 0.2, 0.07, 0.02, 0.01)

_TEXT: dict[Language, dict[str, Any]] = json.loads((TEXT_FOLDER / "poems.json").read_text(encoding="utf-8"))


def poem(draw: Draw, language: Language) -> str:
    """Writes one document: the request for a poem, a newline, four lines."""
    text = _TEXT[language]
    season, poet = draw.choice(text["seasons"]), draw.choice(text["poets"])
    prompt = draw.choice(text["prompts"]).format(season=season, poet=poet)
    if draw.chance(0.5):
        prompt += FULL_STOP[language]
    lines = text["lines"][season][poet]
    taken: list[str] = []
    next_line = 0
    while len(taken) < NUM_LINES:
        still_needed = NUM_LINES - len(taken)
        weights = SKIP_WEIGHTS[: len(lines) - next_line - still_needed + 1]  # never skip what will be needed
        next_line += draw.weighted(range(len(weights)), weights)
        taken.append(lines[next_line])
        next_line += 1
    if language == "zh":  # couplets: a comma within, a full stop after
        taken = [line + "，。"[i % 2] for i, line in enumerate(taken)]
    return prompt + "\n" + "\n".join(taken)
