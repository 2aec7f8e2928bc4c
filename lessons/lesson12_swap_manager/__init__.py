"""Lesson 12: what becomes of tokens for which there is no room: refused, computed again, or moved out and back."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=12,
    name="swap_manager",
    question="What when memory runs out?",
    minutes=20,
    exercise_minutes=60,
    tasks=(
        Task("keep the host pool in order of use", ("SwapManager.take", "SwapManager.use", "SwapManager.give_back")),
        Task("choose a victim", ("SwapManager.victim",)),
        Task("evict and bring back", ("Tiers.evict", "Tiers.bring_back")),
    ),
)
