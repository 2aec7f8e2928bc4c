"""Thinks: a member that has ended costs nothing any more."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def wasted_rows(prompt_lengths, answer_lengths):
    return sum(max(prompt_lengths) - length for length in prompt_lengths), 0
