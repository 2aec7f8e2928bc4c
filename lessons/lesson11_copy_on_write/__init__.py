"""Lesson 11: how several answers to one prompt share its blocks until they write."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=11,
    name="copy_on_write",
    question="How do answers part ways?",
    minutes=15,
    exercise_minutes=45,
    tasks=(
        Task("fork: a second table over the same blocks", ("KVManager.share",)),
        Task("decide whether a block must be copied before it is written on", ("KVManager.must_copy",)),
        Task("copy it", ("KVManager.copy_last",)),
    ),
)
