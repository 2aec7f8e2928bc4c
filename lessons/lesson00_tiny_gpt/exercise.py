"""Lesson 0: a bigram table. Four tasks; `python -m lessons check 0` says how you stand.

A bigram table is the simplest language model that deserves the name: it knows which token follows which, and how often.
Texts are token ids here: whole numbers from 0 to `vocab_size` - 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: `counts[previous][token]`: how often `token` stood right behind `previous`. What was never seen counts 0.
Counts = list[Counter[int]]


def count_pairs(documents: Sequence[Sequence[int]], vocab_size: int, end_of_text: int) -> Counts:
    """Task 1. Count, in all documents together, which token follows which.

    The documents hold no end-of-text token; imagine one before each document's first token, and one behind its
    last. So the table also knows how documents begin, and when to stop. Two documents are not neighbours.

    Args:
        documents: token ids of each; a document may be empty.
        vocab_size: there are tokens 0 … vocab_size - 1.
        end_of_text: one of them.

    Returns:
        One counter for each token of the vocabulary, seen or not.

    With `end_of_text` 0 and documents [5, 7, 5] and [7], the pairs are 0→5, 5→7, 7→5, 5→0 and 0→7, 7→0:
    counts[0] == {5: 1, 7: 1}, counts[5] == {7: 1, 0: 1}, counts[7] == {5: 1, 0: 1}, all others empty.
    """
    raise NotImplementedError("lesson 0, task 1: count which token follows which")


def probability(counts: Counts, previous: int, token: int, smoothing: float) -> float:
    """Task 2. The probability that `token` comes next, after `previous`.

    Counts alone would say 0 of a pair that was never seen. So to the count of *every* pair, seen or not, a small number
    is added, as if each pair had been seen that often before we began to count. Over all tokens of the vocabulary the
    probabilities after one `previous` must still sum to 1.

    Args:
        counts: as `count_pairs` returns it, one counter per token of the vocabulary.
        previous, token: token ids.
        smoothing: what is added to every count, above 0.

    A vocabulary of 4, counts[1] == {2: 3, 0: 1}, smoothing 0.5: after token 1 there were 4 observations, and 4 times
    0.5 was added, 6 in all. probability(counts, 1, 2, 0.5) == 3.5 / 6, and of token 3, never seen there, 0.5 / 6.
    """
    raise NotImplementedError("lesson 0, task 2: turn counts into a probability")


def bits_per_token(counts: Counts, documents: Sequence[Sequence[int]], end_of_text: int, smoothing: float) -> float:
    """Task 3. How many bits the table needs per token of these documents: the mean of -log2 of the probabilities.

    Every token of a document is predicted from the one before it: the first from `end_of_text`, and behind the last one
    `end_of_text` itself is predicted. A document of n tokens has n + 1 predictions; the mean is over all predictions of
    all documents.

    Args:
        counts: from *other* documents, as `count_pairs` returns it.
        documents: token ids, without end-of-text tokens; at least one document.
        end_of_text: its token id.
        smoothing: as `probability` takes it.

    Probabilities 1/2, 1/8 and 1/4 cost 1, 3 and 2 bits: 2 bits per token.
    """
    raise NotImplementedError("lesson 0, task 3: measure in bits per token")


def draw(counts: Counts, previous: int, u: float, smoothing: float) -> int:
    """Task 4. Draw the token that follows `previous`, each with its probability.

    Lay the probabilities end to end on the line from 0 to 1, token 0 first. `u` is a point on that line, and the token
    on whose piece it lies is drawn. A piece includes its left end, but not its right one.

    Args:
        counts: as `count_pairs` returns it.
        previous: the token before.
        u: 0 <= u < 1, evenly distributed. Chance comes from whoever calls.
        smoothing: as `probability` takes it.

    Returns:
        A token id. If rounding leaves `u` beyond the last piece's end, the last token.

    With probabilities 0.5, 0.25, 0.25 of tokens 0, 1, 2: u = 0.1 draws 0, u = 0.5 draws 1, u = 0.9 draws 2.
    """
    raise NotImplementedError("lesson 0, task 4: draw the next token")
