"""An mkdocs hook: the list of the lessons, with the time each takes, from their own title pages."""

from __future__ import annotations

from typing import Any

import clone  # noqa: F401

from lessons.runner.lesson import catalogue

_MARK = "<!-- lessons -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the list where `<!-- lessons -->` stands in the lessons' page."""
    if page.file.src_uri != "lessons/index.md":
        return markdown
    assert _MARK in markdown
    return markdown.replace(_MARK, _table())


def _table() -> str:
    rows = ["| | lesson | question | time needed |", "|---|---|---|---|"]
    for lesson in catalogue():
        time = f"{lesson.minutes} min to read"
        if lesson.has_exercise:
            time += f", {lesson.exercise_minutes} to write"
        name = lesson.name.replace("_", " ")
        rows.append(f"| {lesson.number} | [{name}]({lesson.slug}.md) | {lesson.question} | {time} |")
    reading = sum(lesson.minutes for lesson in catalogue()) / 60
    writing = sum(lesson.exercise_minutes for lesson in catalogue()) / 60
    return "\n".join(rows) + f"\n\nAll together: {reading:.0f} hours of reading and {writing:.0f} of writing code.\n"
