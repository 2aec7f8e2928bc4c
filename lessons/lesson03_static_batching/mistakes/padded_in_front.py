"""Thinks: the texts should end in the same column, so that the answers begin together."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def pad(prompts):
    longest = max(len(prompt) for prompt in prompts)
    return [[*[0] * (longest - len(prompt)), *prompt] for prompt in prompts], [longest - 1] * len(prompts)
