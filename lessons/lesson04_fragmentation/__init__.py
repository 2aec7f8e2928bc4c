"""Lesson 4: where the memory of a KV cache goes when every request must have one contiguous region."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=4,
    name="fragmentation",
    question="Where does the memory go?",
    minutes=20,
    exercise_minutes=30,
    tasks=(
        Task("a region of a power of two, split off a larger one", ("region_size", "Buddy.allocate")),
        Task("give a region back, and merge it with its buddy", ("Buddy.free",)),
    ),
)
