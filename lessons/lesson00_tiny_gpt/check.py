"""Lesson 0's check: the small cases of the docstrings, then the ends of documents, then a thousand at random."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from types import ModuleType

from lessons.runner.checks import Wrong, expect, expect_whole

MISCONCEPTIONS: dict[str, str] = {
    "across_documents": (
        "Two documents are not neighbours: they were written independently of each other. What follows a document's "
        "last token is the end of the text, and what follows that end is a document's first token."
    ),
    "never_ends": (
        "The end of a document is something to learn like any other token. A table that never saw an end-of-text "
        "token behind another one does not know when to stop, and its texts never do."
    ),
    "transposed": (
        "The table is read from what is known to what is wanted: the first index is the token before, the second the "
        "one that follows. The other way round it predicts the past from the future."
    ),
    "no_smoothing": (
        "Never seen is not impossible. One pair of probability 0 in a whole library costs -log2 0, which is infinitely "
        "many bits, and the mean is then infinite, too."
    ),
    "sums_above_one": (
        "What is added above must be added below: smoothing goes to every token of the vocabulary, so the total grows "
        "by smoothing times the vocabulary. Else the probabilities sum to more than 1, and the bits come out too low."
    ),
    "seen_tokens_only": (
        "The unseen tokens get their smoothing, too, so it must be in the total as often as there are tokens in the "
        "vocabulary, not as often as there are tokens that were seen. Else the probabilities sum to more than 1."
    ),
    "nats": (
        "The natural logarithm gives nats, not bits. A nat is 1.44 bits, so the figure looks better by a third, and is "
        "not. Training loops report nats; divide by ln 2, or use log2."
    ),
    "mean_probability": (
        "Probabilities of independent predictions multiply, so it is their logarithms that add up and are averaged. "
        "The logarithm of the average probability lets one good guess hide many bad ones."
    ),
    "mean_of_documents": (
        "Per token means that every token weighs the same. The mean of the documents' means lets a token of a short "
        "document weigh more than one of a long document."
    ),
    "end_not_counted": (
        "The end-of-text token is predicted and paid for, so it is counted, too. Whatever is in the sum must be in the "
        "number by which it is divided: predictions, not words, characters or inner tokens."
    ),
    "learns_the_test": (
        "A model that has counted the text in hand is not predicting it, it remembers it. Bits per token are measured "
        "on text that the table has never seen."
    ),
    "always_the_likeliest": (
        "The most probable token every time is no draw: the same token is followed by the same one for ever, and the "
        "text runs in a circle. u decides."
    ),
    "each_as_likely": (
        "Seen once and seen a thousand times are not the same. Each token is drawn with its probability, which is what "
        "the counts were counted for, and a token that was never seen has its small one."
    ),
}
_NUM_RANDOM = 200


def task_1(exercise: ModuleType) -> None:
    """Pairs of one document, of two, of an empty one."""
    counts = _counted(exercise, [[5, 7, 3]], 8)
    what = "documents [[5, 7, 3]], end_of_text 0: counts[5]"
    _expect(what, _row(counts, 5), {7: 1}, {"transposed": {0: 1}})
    _expect(what.replace("counts[5]", "counts[0]"), _row(counts, 0), {5: 1}, {"transposed": {3: 1}})
    _expect(what.replace("counts[5]", "counts[3]"), _row(counts, 3), {0: 1}, {"never_ends": {}})
    _expect(what.replace("counts[5]", "counts[6]"), _row(counts, 6), {}, {})
    counts = _counted(exercise, [[5, 7], [3, 7]], 8)
    what = "documents [[5, 7], [3, 7]], end_of_text 0: "
    _expect(f"{what}counts[7]", _row(counts, 7), {0: 2}, {"across_documents": {3: 1, 0: 1}, "never_ends": {}})
    _expect(f"{what}counts[0]", _row(counts, 0), {5: 1, 3: 1}, {"across_documents": {5: 1}})
    counts = _counted(exercise, [[2], []], 3, end_of_text=1)
    what = "documents [[2], []], end_of_text 1 (the empty one begins and ends at once): counts[1]"
    _expect(what, _row(counts, 1), {2: 1, 1: 1}, {})
    chance = random.Random(0)
    for _ in range(_NUM_RANDOM):
        vocab_size = chance.randint(2, 6)
        documents = _documents(chance, vocab_size)
        got = _counted(exercise, documents, vocab_size, end_of_text=1)
        text = [[1, *document, 1] for document in documents]
        for previous in range(vocab_size):
            pairs = Counter(b for row in text for a, b in itertools.pairwise(row) if a == previous)
            _expect(f"documents {documents}, end_of_text 1: counts[{previous}]", _row(got, previous), dict(pairs), {})


def task_2(exercise: ModuleType) -> None:
    """A seen pair, an unseen one, a row without any, and the sum."""
    counts = [Counter[int](), Counter({2: 3, 0: 1}), Counter({0: 2}), Counter[int]()]
    for token, right, wrong in (
        (2, 3.5 / 6, {3 / 4: "no_smoothing", 3.5 / 4: "sums_above_one", 3.5 / 4.5: "sums_above_one",
                      3.5 / 5: "seen_tokens_only"}),
        (3, 0.5 / 6, {0.0: "no_smoothing", 0.5 / 4: "sums_above_one", 0.5 / 4.5: "sums_above_one",
                      0.5 / 5: "seen_tokens_only"}),
    ):  # fmt: skip
        got = exercise.probability([row.copy() for row in counts], 1, token, 0.5)
        _expect_near(
            f"counts[1] == {{2: 3, 0: 1}}, vocabulary of 4: probability(counts, 1, {token}, 0.5)", got, right, wrong
        )
    got = exercise.probability([row.copy() for row in counts], 3, 1, 0.5)
    _expect_near("counts[3] is empty, all four are as likely: probability(counts, 3, 1, 0.5)", got, 0.25, {})
    chance = random.Random(0)
    for _ in range(_NUM_RANDOM):
        counts, smoothing = _random_counts(chance), chance.choice([0.001, 0.5, 2.0])
        previous = chance.randrange(len(counts))
        kept = [row.copy() for row in counts]
        found = [exercise.probability(counts, previous, token, smoothing) for token in range(len(counts))]
        said = f"counts[{previous}] == {dict(kept[previous])}, vocabulary of {len(counts)}, smoothing {smoothing}"
        _expect(f"{said}: counts afterwards", counts, kept, {})
        for token, got in enumerate(found):
            _expect_near(f"{said}: probability of {token}", got, _probability(counts, previous, token, smoothing), {})


def task_3(exercise: ModuleType) -> None:
    """Probabilities of 1/2, 1/8 and 1/4; then two documents of different lengths."""
    counts = [Counter({1: 3, 2: 1}), Counter({0: 4}), Counter({0: 1, 3: 3}), Counter[int]()]
    said = "0→1, 1→2, 2→0 have probabilities 1/2, 1/8, 1/4"
    given = [row.copy() for row in counts]
    learnt = -(math.log2(5 / 9) + math.log2(2 / 9) + math.log2(3 / 9)) / 3
    wrong = {
        2 * math.log(2): "nats",
        -math.log2((1 / 2 + 1 / 8 + 1 / 4) / 3): "mean_probability",
        3.0: "end_not_counted",
        learnt: "learns_the_test",
    }
    got = exercise.bits_per_token(given, [[1, 2]], 0, 1.0)
    _expect_near(f"{said}: bits_per_token(counts, [[1, 2]], end_of_text=0, smoothing=1)", got, 2.0, wrong)
    _expect(f"{said}: counts afterwards", given, counts, {"learns_the_test": given})
    got = exercise.bits_per_token(given, [[1, 2], []], 0, 1.0)
    what = f"{said}, and 0→0 has 1/8: bits_per_token(counts, [[1, 2], []], end_of_text=0, smoothing=1)"
    _expect_near(what, got, 9 / 4, {5 / 2: "mean_of_documents"})
    chance = random.Random(0)
    for _ in range(_NUM_RANDOM):
        counts, smoothing = _random_counts(chance), chance.choice([0.001, 0.5, 2.0])
        documents = _documents(chance, len(counts))
        got = exercise.bits_per_token([row.copy() for row in counts], documents, 1, smoothing)
        text = [[1, *document, 1] for document in documents]
        pairs = [(a, b) for row in text for a, b in itertools.pairwise(row)]
        right = -sum(math.log2(_probability(counts, a, b, smoothing)) for a, b in pairs) / len(pairs)
        what = f"counts {[dict(row) for row in counts]}, documents {documents}, end_of_text 1, smoothing {smoothing}"
        _expect_near(what, got, right, {})


def task_4(exercise: ModuleType) -> None:
    """Points in the pieces and on their ends, then many points on one line."""
    counts = [Counter({0: 3, 2: 1}), Counter[int](), Counter[int](), Counter[int]()]
    said = "after 0, the probabilities of 0, 1, 2, 3 are 1/2, 1/8, 1/4, 1/8"
    for u, right, wrong in (
        (0.9, 3, {"always_the_likeliest": 0, "each_as_likely": 2}),
        (0.1, 0, {}),
        (0.7, 2, {"always_the_likeliest": 0}),
        (0.55, 1, {"each_as_likely": 2}),
        (0.0, 0, {}),
        (0.5, 1, {"each_as_likely": 2}),
        (0.625, 2, {}),
        (1 - 2**-53, 3, {}),
    ):
        got = exercise.draw([row.copy() for row in counts], 0, u, 1.0)
        _expect(f"{said}: draw(counts, 0, u={u!r}, smoothing=1)", got, right, wrong)
        expect_whole(f"{said}: draw(counts, 0, u={u!r}, smoothing=1)", got, right)
    # Ten times 0.1 is a bit less than 1, and so is the largest u.
    got = exercise.draw([Counter[int]() for _ in range(10)], 0, 1 - 2**-53, 1.0)
    _expect(f"ten probabilities of 0.1: drawn with u={1 - 2**-53!r}, where their rounded sum ends", got, 9, {})
    chance = random.Random(0)
    for _ in range(_NUM_RANDOM):
        counts, u = _random_counts(chance), chance.random()
        previous = chance.randrange(len(counts))
        pieces = [_probability(counts, previous, token, 0.5) for token in range(len(counts))]
        right = next((token for token in range(len(counts)) if u < sum(pieces[: token + 1])), len(counts) - 1)
        got = exercise.draw([row.copy() for row in counts], previous, u, 0.5)
        _expect(f"probabilities {[round(piece, 4) for piece in pieces]}: drawn with u = {u:.4f}", got, right, {})


# Within --------------------------------------------------------------------------------------------------------------


def _expect(what: str, got: object, right: object, wrong: Mapping[str, object]) -> None:
    """`got` is right; if it is what a misconception gives, it is called by its name."""
    because = next((name for name, value in wrong.items() if got == value), None)
    expect(what, got, right, MISCONCEPTIONS[because] if because else "")


def _expect_near(what: str, got: object, right: float, wrong: Mapping[float, str]) -> None:
    """The same of a number, but for rounding; `wrong` says which misconceptions give which numbers."""
    if not isinstance(got, Real):
        raise Wrong(what, got, right)
    if not math.isclose(got, right, rel_tol=1e-9):
        because = next((name for value, name in wrong.items() if math.isclose(got, value, rel_tol=1e-9)), None)
        raise Wrong(what, got, right, MISCONCEPTIONS[because] if because else "")


def _counted(
    exercise: ModuleType, documents: list[list[int]], vocab_size: int, end_of_text: int = 0
) -> list[Counter[int]]:
    """What `count_pairs` returns, if it has the right shape and left the documents alone."""
    given = [list(document) for document in documents]
    counts = exercise.count_pairs(given, vocab_size, end_of_text)
    said = f"documents {documents}, vocab_size {vocab_size}, end_of_text {end_of_text}: "
    if not isinstance(counts, list) or not all(isinstance(row, Counter) for row in counts):
        raise Wrong(f"{said}what count_pairs returns", counts, f"a list of {vocab_size} Counters")
    expect(f"{said}how many counters it returns", len(counts), vocab_size)
    expect(f"{said}the documents afterwards", given, documents)
    return counts


def _row(counts: Sequence[Counter[int]], previous: int) -> dict[int, int]:
    return {token: count for token, count in counts[previous].items() if count}


def _documents(chance: random.Random, vocab_size: int) -> list[list[int]]:
    """One to four short ones, of any token but 1."""
    tokens = [token for token in range(vocab_size) if token != 1]
    return [[chance.choice(tokens) for _ in range(chance.randrange(5))] for _ in range(chance.randint(1, 4))]


def _random_counts(chance: random.Random) -> list[Counter[int]]:
    vocab_size = chance.randint(2, 6)
    return [
        Counter({token: chance.randint(1, 9) for token in range(vocab_size) if chance.random() < 0.5})
        for _ in range(vocab_size)
    ]


def _probability(counts: Sequence[Counter[int]], previous: int, token: int, smoothing: float) -> float:
    """The slow way: every row with its smoothing written out."""
    row = [counts[previous][other] + smoothing for other in range(len(counts))]
    return row[token] / sum(row)
