"""Lesson 3: why several requests are computed together, and what a batch wastes that ends with its slowest member."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=3,
    name="static_batching",
    question="Why batch, and what does a static batch waste?",
    minutes=15,
    exercise_minutes=30,
    tasks=(
        Task("make prompts equally long", ("pad",)),
        Task("say what a row must not see", ("hide",)),
        Task("reckon the waste beforehand", ("wasted_rows",)),
    ),
)
