"""Lesson 0: the text, tokenizer, training and judging of tiny-gpt, the model that every later lesson runs."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=0,
    name="tiny_gpt",
    question="Where does the model come from?",
    minutes=20,
    exercise_minutes=45,
    tasks=(
        Task("count which token follows which", ("count_pairs",)),
        Task("turn counts into a probability", ("probability",)),
        Task("measure in bits per token", ("bits_per_token",)),
        Task("draw the next token", ("draw",)),
    ),
)
