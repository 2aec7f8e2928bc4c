"""Lesson 14: what all the parts together mean for a service, on traffic that comes when it likes."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=14,
    name="a_day_of_traffic",
    question="What does it mean for a service?",
    minutes=20,
    exercise_minutes=30,
    tasks=(
        Task("how much a request may take", ("size",)),
        Task("short before long, and nobody starves", ("patient_order",)),
        Task("urgent before patient, and still nobody starves", ("order",)),
    ),
)
