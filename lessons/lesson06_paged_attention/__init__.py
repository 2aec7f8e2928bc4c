"""Lesson 6: attention over a context that lies scattered in blocks, without copying it together first."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=6,
    name="paged_attention",
    question="How do you attend over scattered blocks?",
    minutes=20,
    exercise_minutes=60,
    tasks=(
        Task("take one block into a running softmax", ("update",)),
        Task("attend over a block table, one query", ("attend",)),
        Task("attend for a whole step, causally", ("paged_attention",)),
    ),
)
