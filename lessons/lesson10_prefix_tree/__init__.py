"""Lesson 10: how requests that begin alike share what was computed for the beginning."""

from lessons.runner.lesson import Lesson, Task

LESSON = Lesson(
    number=10,
    name="prefix_tree",
    question="Why compute the same words twice?",
    minutes=18,
    exercise_minutes=90,
    tasks=(
        Task(
            "keep each block's content under its path", ("PrefixTree.child", "PrefixTree.insert", "PrefixTree.take_out")
        ),
        Task("follow a prompt down the tree", ("PrefixTree.follow",)),
        Task("share to the token inside a block", ("PrefixTree.nearest",)),
    ),
)
