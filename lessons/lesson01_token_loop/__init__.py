"""Lesson 1: what one token of generation is, and what it costs."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=1,
    name="token_loop",
    question="What is one token of generation? Prefill and decode",
    minutes=15,
    exercise_minutes=30,
    tasks=(
        Task("write the loop", ("generate",)),
        Task("count the FLOPs of a step", ("step_flops",)),
        Task("count the bytes of a step", ("step_bytes",)),
    ),
)
