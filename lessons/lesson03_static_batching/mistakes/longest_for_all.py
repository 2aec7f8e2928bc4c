"""Thinks: the batch has come as far as its longest member, so that is how far everyone may look."""

import torch

from lessons.lesson03_static_batching.solution import *  # noqa: F403


def hide(positions, columns):
    reached = positions.max(dim=0, keepdim=True).values
    return (torch.arange(columns) > reached[:, :, None]).expand(*positions.shape, columns)
