"""Lesson 8: how a request gets its place the moment another one leaves, decided anew for every step."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=8,
    name="continuous_batching",
    question="Why does nobody wait for the slowest?",
    minutes=15,
    exercise_minutes=60,
    tasks=(
        Task("fill a step", ("Scheduler.fill",)),
        Task("book what came back", ("Scheduler.book",)),
        Task("leave at once", ("Scheduler.leave",)),
    ),
)
