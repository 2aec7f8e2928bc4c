"""Thinks: the prompts are mine now; filling them up in place saves a copy."""

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def pad(prompts):
    last = [len(prompt) - 1 for prompt in prompts]
    longest = max(last) + 1
    for prompt in prompts:
        prompt.extend([0] * (longest - len(prompt)))
    return prompts, last
