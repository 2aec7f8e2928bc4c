"""Thinks: a token is predicted from those before it, so it looks at those before it."""

import torch

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def hide(positions, columns):
    return torch.arange(columns) >= positions[:, :, None]
