"""Thinks: the mask is there because of the padding, so it hides what lies behind the prompt's last token."""

import torch

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def hide(positions, columns):
    ends = positions.max(dim=1, keepdim=True).values
    return (torch.arange(columns) > ends[:, :, None]).expand(*positions.shape, columns)
