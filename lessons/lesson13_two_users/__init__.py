"""Lesson 13: two users with a common beginning and a third who comes later, block by block."""

from lessons.runner.lesson import Lesson

LESSON = Lesson(
    number=13,
    name="two_users",
    question="The whole story",
    minutes=20,
    tasks=(),
)
