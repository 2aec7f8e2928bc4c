"""The sampler: what may be drawn, how often, by which noise, and that no row minds its neighbours."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minipaged.model.sampler import Sampler, uniform
from minipaged.plan import Draw, Sampling

GREEDY = Sampling(temperature=0.0, top_k=None, top_p=1.0, num_top_logprobs=0, seed=0, index=0)
PLAIN = replace(GREEDY, temperature=1.0)


def draws(logits: list[float], sampling: Sampling, count: int = 4000) -> list[int]:
    """Token ids of `count` draws from one row, at positions 0, 1, 2, …"""
    rows = torch.tensor(logits).expand(count, -1)  # (count, vocab)
    return [draw.token_id for draw in Sampler().sample(rows, [sampling] * count, range(count))]


def chi_square(counts: list[int], expected: list[float]) -> float:
    return sum((count - want) ** 2 / want for count, want in zip(counts, expected, strict=True))


# For k degrees of freedom, chi-square has mean k and deviation sqrt(2k). Seeds are fixed, so a bound of five deviations
# is no gamble; it is wide enough for an honest sampler and far too narrow for a wrong one.
def bound(degrees: int) -> float:
    return degrees + 5 * math.sqrt(2 * degrees)


# Greedy ---------------------------------------------------------------------------------------------------------------


def test_greedy_takes_the_lowest_id_on_a_tie() -> None:
    rows = torch.tensor([[0.0, 3.0, 3.0, 1.0], [5.0, 5.0, 5.0, 5.0], [float("-inf"), -2.0, -1.0, -1.0]])
    assert [draw.token_id for draw in Sampler().sample(rows, [GREEDY] * 3, [0, 0, 0])] == [1, 0, 2]


def test_no_rows() -> None:
    assert Sampler().sample(torch.empty(0, 5), [], []) == []


# Distribution ---------------------------------------------------------------------------------------------------------

LOGITS = [2.0, 1.0, 0.0, -1.0, 1.5, float("-inf")]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("top_k", "kept"), [(None, [0, 1, 2, 3, 4]), (3, [0, 1, 4]), (100, [0, 1, 2, 3, 4])])
def test_frequencies_are_the_probabilities(temperature: float, top_k: int | None, kept: list[int]) -> None:
    ids = draws(LOGITS, replace(PLAIN, temperature=temperature, top_k=top_k, seed=11))
    weights = {token: math.exp(LOGITS[token] / temperature) for token in kept}
    likely = [token for token in kept if 4000 * weights[token] / sum(weights.values()) > 5]
    assert set(ids) <= set(kept)
    expected = [4000 * weights[token] / sum(weights.values()) for token in likely]
    assert chi_square([ids.count(token) for token in likely], expected) < bound(len(likely))


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (None, 0.50, [2]),  # the most probable one alone suffices
        (None, 0.51, [2, 0]),
        (None, 0.81, [2, 0, 1]),
        (None, 0.96, [2, 0, 1, 3]),
        (None, 1e-9, [2]),  # at least one stays
        (2, 0.60, [2]),  # after top-k: 0.5 / 0.8 is 0.625
        (2, 0.63, [2, 0]),
        (1, 1.0, [2]),
    ],
)
def test_top_p_keeps_the_fewest_tokens_that_suffice(top_k: int | None, top_p: float, kept: list[int]) -> None:
    probabilities = [0.3, 0.15, 0.5, 0.05]
    logits = [math.log(p * (1 + 1e-6 * (i == 2))) for i, p in enumerate(probabilities)]  # 0.50 suffices after rounding
    ids = draws(logits, replace(PLAIN, top_k=top_k, top_p=top_p), count=1500)
    assert set(ids) == set(kept)
    total = sum(probabilities[token] for token in kept)
    expected = [1500 * probabilities[token] / total for token in kept]
    assert chi_square([ids.count(token) for token in kept], expected) < bound(len(kept))


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"), [(2, 1.0, {1, 2}), (1, 1.0, {1}), (None, 0.49, {1, 2}), (3, 0.6, {1, 2})]
)
def test_ties_go_to_the_lower_ids(top_k: int | None, top_p: float, kept: set[int]) -> None:
    logits = [0.0, 9.0, 9.0, 9.0, 9.0]
    assert set(draws(logits, replace(PLAIN, top_k=top_k, top_p=top_p), count=300)) == kept


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-30, 1e-6])
def test_tiny_temperatures_are_greedy_and_do_not_overflow(temperature: float) -> None:
    assert set(draws([1.0, 3e38, -3e38, 2.0], replace(PLAIN, temperature=temperature), count=50)) == {1}


def test_huge_temperatures_are_uniform() -> None:
    ids = draws([50.0, 0.0, -50.0, 7.0], replace(PLAIN, temperature=1e300))
    assert chi_square([ids.count(token) for token in range(4)], [1000.0] * 4) < bound(3)


@given(st.data())
def test_a_draw_is_among_those_that_sorting_by_hand_would_keep(data) -> None:
    vocab = data.draw(st.integers(1, 12))
    values = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 2.0])
    logits = data.draw(st.lists(values, min_size=vocab, max_size=vocab))
    top_k, top_p = data.draw(st.none() | st.integers(1, 14)), data.draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    order = sorted(range(vocab), key=lambda token: (-logits[token], token))[:top_k]
    weights = [math.exp(logits[token]) for token in order]
    allowed, before = set(), 0.0
    for token, weight in zip(order, weights, strict=True):
        if before / sum(weights) < top_p + 1e-12:
            allowed.add(token)
        before += weight
    sampling = replace(PLAIN, top_k=top_k, top_p=top_p, seed=data.draw(st.integers(0, 2**70)))
    assert set(draws(logits, sampling, count=8)) <= allowed


# Neighbours -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocab", [7, 1000, 40000])
def test_a_row_does_not_depend_on_its_neighbours(vocab: int) -> None:
    """Bitwise, whatever shares the batch: also log-probabilities."""
    logits = torch.randn(12, vocab, generator=torch.Generator().manual_seed(5)) * 3
    samplings = [
        Sampling((0.0, 0.7, 1.3)[i % 3], (None, 5, 40)[i % 3 if i < 6 else 0], (1.0, 0.9)[i % 2], i % 4, i, i % 5)
        for i in range(12)
    ]
    positions = [7 * i for i in range(12)]
    together = Sampler().sample(logits, samplings, positions)
    for picked in ([3], [11, 0], [5, 6, 7], list(range(11, -1, -1))):
        alone = Sampler().sample(logits[picked], [samplings[i] for i in picked], [positions[i] for i in picked])
        assert alone == [together[i] for i in picked]
    assert Sampler().sample(logits, samplings, torch.tensor(positions)) == together


def test_same_seed_same_token_and_other_index_other_tokens() -> None:
    logits = [0.0] * 1000
    one = draws(logits, replace(PLAIN, seed=3), count=20)
    assert one == draws(logits, replace(PLAIN, seed=3), count=20)
    assert one != draws(logits, replace(PLAIN, seed=4), count=20)
    assert one != draws(logits, replace(PLAIN, seed=3, index=1), count=20)


# Noise ----------------------------------------------------------------------------------------------------------------


def columns() -> dict[str, torch.Tensor]:
    """The hash along each of its three numbers, the other two fixed: neighbours in the sense that runs will have."""
    count = 4096
    line, still = list(range(count)), [5] * count
    return {
        "seeds": uniform(line, still, still),
        "indices": uniform(still, line, still),
        "positions": uniform(still, still, line),
        "far seeds": uniform([2**40 * i for i in line], still, still),
    }


@pytest.mark.parametrize("which", ["seeds", "indices", "positions", "far seeds"])
def test_noise_is_uniform_and_neighbours_are_independent(which: str) -> None:
    noise = columns()[which]
    assert noise.dtype == torch.float64 and bool(((noise >= 0) & (noise < 1)).all())
    counts = noise.mul(32).long().bincount(minlength=32)
    assert chi_square(counts.tolist(), [len(noise) / 32] * 32) < bound(31)
    # The low bits as well as the high ones.
    low = (noise * 2**48 % 32).long().bincount(minlength=32)
    assert chi_square(low.tolist(), [len(noise) / 32] * 32) < bound(31)
    for lag in (1, 2, 3, 16, 64, 256):
        cells = noise[:-lag].mul(8).long() * 8 + noise[lag:].mul(8).long()  # pairs of neighbours fall evenly into 8 x 8
        pairs = cells.bincount(minlength=64)
        assert chi_square(pairs.tolist(), [len(cells) / 64] * 64) < bound(63)


def test_noise_along_different_numbers_is_independent() -> None:
    seen = columns()
    for first, second in (("seeds", "indices"), ("indices", "positions"), ("seeds", "positions")):
        pairs = (seen[first].mul(8).long() * 8 + seen[second].mul(8).long())[6:]  # at 5 all three are the same draw
        assert chi_square(pairs.bincount(minlength=64).tolist(), [len(pairs) / 64] * 64) < bound(63)


def test_no_two_draws_share_their_noise() -> None:
    """(seed, index, position) in a small cube; a hash of their sum, say, would collide."""
    cube = [(s, i, p) for s in range(20) for i in range(20) for p in range(20)]
    noise = uniform(*map(list, zip(*cube, strict=True)))
    assert noise.unique().numel() == len(cube)


def test_noise_stays_what_it_is() -> None:
    """Answers recorded with a seed must not change from one version to the next. Against plain integers."""

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
        return x ^ (x >> 31)

    seeds, indices, positions = [0, 1, 12345, 2**63, 2**64 - 1, 2**64 + 1], [0, 1, 2, 3, 4, 5], [0, 7, 1023, 5, 6, 8]
    expected = []
    for numbers in zip(seeds, indices, positions, strict=True):
        state = 0
        for number in numbers:
            state = mix((state + (number + 1) * 0x9E3779B97F4A7C15) % 2**64)
        expected.append((state >> 11) / 2**53)
    assert uniform(seeds, indices, positions).tolist() == expected


# Log-probabilities and faults -----------------------------------------------------------------------------------------


def test_log_probabilities_are_of_the_raw_logits() -> None:
    row = torch.tensor([[1.0, 4.0, 2.0, 4.0]])
    (draw,) = Sampler().sample(row, [Sampling(0.01, 1, 0.5, 3, 0, 0)], [0])
    expected = row.log_softmax(-1)[0].tolist()
    assert draw.token_id == 1
    assert draw.logprob == expected[1]
    assert draw.top_logprobs == ((1, expected[1]), (3, expected[3]), (2, expected[2]))  # the lower id first on a tie


def test_log_probabilities_only_as_many_as_asked_for_and_as_there_are() -> None:
    rows = torch.zeros(3, 2)
    got = Sampler().sample(rows, [replace(GREEDY, num_top_logprobs=k) for k in (0, 1, 9)], [0, 0, 0])
    assert [len(draw.top_logprobs) for draw in got] == [0, 1, 2]
    assert got[0] == Draw(0, pytest.approx(math.log(0.5)))


@pytest.mark.parametrize("bad", [[0.0, float("nan")], [0.0, float("inf")], [float("-inf")] * 2])
@pytest.mark.parametrize("sampling", [GREEDY, PLAIN])
def test_logits_that_are_no_numbers_are_a_fault(bad: list[float], sampling: Sampling) -> None:
    with pytest.raises(FloatingPointError, match="row 1"):
        Sampler().sample(torch.tensor([[0.0, 1.0], bad]), [sampling] * 2, [0, 0])
