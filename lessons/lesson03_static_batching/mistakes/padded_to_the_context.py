"""Thinks: a batch should always have the same shape, so every prompt is brought to the longest possible."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403

LONGEST = 512


def pad(prompts):
    return [[*prompt, *[0] * (LONGEST - len(prompt))] for prompt in prompts], [len(prompt) - 1 for prompt in prompts]
