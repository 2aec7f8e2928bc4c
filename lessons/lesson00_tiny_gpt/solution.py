"""Lesson 0: our bigram table, in the exercise's shape. `bigram_table.py` is made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

#: `counts[previous][token]`: how often `token` stood right behind `previous`. What was never seen counts 0.
Counts = list[Counter[int]]


def count_pairs(documents: Sequence[Sequence[int]], vocab_size: int, end_of_text: int) -> Counts:
    """Task 1. Count, in all documents together, which token follows which."""
    counts: Counts = [Counter() for _ in range(vocab_size)]
    for document in documents:
        previous = end_of_text
        for token in (*document, end_of_text):
            counts[previous][token] += 1
            previous = token
    return counts


def probability(counts: Counts, previous: int, token: int, smoothing: float) -> float:
    """Task 2. The probability that `token` comes next, after `previous`."""
    # `len(counts)` is the size of the vocabulary, and every one of its tokens got its share of smoothing.
    seen = counts[previous]
    return (seen[token] + smoothing) / (seen.total() + smoothing * len(counts))


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    """Task 3. How many bits the table needs per token of these documents: the mean of -log2 of the probabilities."""
    bits, num_predictions = 0.0, 0
    for document in documents:
        previous = end_of_text
        for token in (*document, end_of_text):
            bits -= math.log2(probability(counts, previous, token, smoothing))
            num_predictions += 1
            previous = token
    return bits / num_predictions


def draw(counts: Counts, previous: int, u: float, smoothing: float) -> int:
    """Task 4. Draw the token that follows `previous`, each with its probability."""
    end_of_piece = 0.0
    for token in range(len(counts)):
        end_of_piece += probability(counts, previous, token, smoothing)
        if u < end_of_piece:
            return token
    return len(counts) - 1
