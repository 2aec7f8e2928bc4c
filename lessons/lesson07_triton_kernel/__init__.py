"""Lesson 7: how a GPU attends over scattered blocks, as a ladder of four Triton kernels."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=7,
    name="triton_kernel",
    question="How does a GPU do it?",
    minutes=20,
    exercise_minutes=60,
    tasks=(
        Task("the tile loop of a decode kernel", ("tile_loop",)),
        Task("the merge of split contexts", ("merge_splits",)),
    ),
)
