"""Thinks: the answer begins behind the last column, so it is drawn from there."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def pad(prompts):
    longest = max(len(prompt) for prompt in prompts)
    return [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], [longest - 1] * len(prompts)
