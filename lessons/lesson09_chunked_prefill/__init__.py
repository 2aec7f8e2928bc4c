"""Lesson 9: how a step's tokens are shared out, so that a long prompt does not stop those who are writing."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=9,
    name="chunked_prefill",
    question="Who pays when a long prompt arrives?",
    minutes=15,
    exercise_minutes=60,
    tasks=(
        Task("say how many tokens one may have", ("Scheduler.share",)),
        Task("share out a step's budget", ("Scheduler.fill",)),
        Task("say when a token is drawn", ("Scheduler.reaches_end",)),
    ),
)
