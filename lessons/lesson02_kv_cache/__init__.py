"""Lesson 2: why K and V are kept, and what keeping them costs."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=2,
    name="kv_cache",
    question="Why cache K and V?",
    minutes=15,
    exercise_minutes=30,
    tasks=(
        Task("put new tokens in their places", ("ContiguousCache.positions", "ContiguousCache.append")),
        Task("attend over all that is kept", ("ContiguousCache.attend",)),
        Task("say what a token costs in memory", ("kv_bytes_per_token",)),
    ),
)
