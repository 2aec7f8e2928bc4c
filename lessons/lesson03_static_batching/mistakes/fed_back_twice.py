"""Thinks: after the prompts, an answer of a tokens takes a more steps."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def wasted_rows(prompt_lengths, answer_lengths):
    padded = sum(max(prompt_lengths) - length for length in prompt_lengths)
    idle = sum(max(answer_lengths) + 1 - length for length in answer_lengths)
    return padded, idle
