"""The project's own padding and mask under the exercise's names, so that the same check can be put to them."""

from lessons.lesson03_static_batching.solution import wasted_rows
from minipaged.model.static_batch import hide, pad

__all__ = ["hide", "pad", "wasted_rows"]
