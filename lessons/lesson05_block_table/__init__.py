"""Lesson 5: how a block table does for token slots what a page table does for memory."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=5,
    name="block_table",
    question="How does virtual memory solve it?",
    minutes=15,
    exercise_minutes=60,
    tasks=(
        Task("take a free block", ("BlockPool.allocate",)),
        Task("give a block back", ("BlockPool.free",)),
        Task("find a token's slot, and know when a block is full", ("BlockTable.slot", "BlockTable.blocks_missing")),
    ),
)
