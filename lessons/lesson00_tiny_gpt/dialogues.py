"""Dialogues under one common system prompt per language: a teacher is asked, and asked on.

All of them begin with the same tokens, which is what makes them worth having: a server that shares the system prompt
between requests stores it once.

It does not know how a single question is phrased or answered: that is `questions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessons.lesson00_tiny_gpt.draw import Draw
from lessons.lesson00_tiny_gpt.questions import SEPARATOR, ask, walk
from lessons.lesson00_tiny_gpt.subjects import Language, Subject

MAX_TURNS = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """The fixed words of a dialogue in one language; `user` and `assistant` end just before the text begins."""

    system: str
    user: str
    assistant: str
    more: tuple[str, ...]  # requests to go on with the subject in hand


FRAMES: dict[Language, Frame] = {
    "en": Frame(
        system="System: You are a patient teacher. Answer in a few short sentences.",
        user="\nUser: ",
        assistant="\nAssistant: ",
        more=("Tell me more.", "Please go on.", "What else should I know?"),
    ),
    "zh": Frame(
        system="系统：你是一位耐心的老师，请用几句简短的话回答。",
        user="\n用户：",
        assistant="\n助手：",
        more=("再多讲一点。", "请继续。", "还有什么值得知道的？"),
    ),
}


def dialogue(draw: Draw, subjects: Sequence[Subject]) -> str:
    """Writes one document of 1 to 4 turns; a turn asks about a new subject or for more about the last one."""
    frame = FRAMES[subjects[0].language]
    text = frame.system
    subject: Subject | None = None
    last = 0  # index of the last sentence that was said about `subject`
    for turn in range(MAX_TURNS):
        if turn and draw.chance(1 / (MAX_TURNS - turn + 1)):
            break
        if subject is not None and last < len(subject.sentences) - 1 and draw.chance(0.4):
            question = draw.choice(frame.more)
            indices = walk(draw, len(subject.sentences), shortest=2, longest=4, after=last)
        else:
            # Not the same subject again: a teacher who has just explained it would not begin from the beginning.
            subject = draw.choice([other for other in subjects if other is not subject])
            question = ask(draw, subject)
            indices = walk(draw, len(subject.sentences), shortest=2, longest=4)
        last = indices[-1]
        answer = SEPARATOR[subject.language].join(subject.sentences[i] for i in indices)
        text += frame.user + question + frame.assistant + answer
    return text
