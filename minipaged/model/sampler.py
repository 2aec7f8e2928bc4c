"""Sampler: rows of logits in, drawn tokens out, vectorised over the batch.

Noise is no generator's state but a hash of (seed, sequence index, position): a draw depends on nothing else, so an
answer is the same whatever runs beside it, and a token drawn again after a preemption is the same token. Each row is
worked on by itself (all reductions run along the vocabulary), so its outcome does not depend on its neighbours. Does
not know of requests, chunks or text.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minipaged.plan import Draw, Sampling

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: splitmix64's step


class Sampler:
    """Greedy, temperature, then top-k, then top-p; inverse CDF with one uniform number per draw."""

    def sample(
        self, logits: torch.Tensor, samplings: Sequence[Sampling], positions: Sequence[int] | torch.Tensor
    ) -> list[Draw]:
        """Draws one token from each row.

        Args:
            logits: (rows, vocab) float32.
            samplings: one per row.
            positions: one per row: the position that the drawn token will have in its sequence.

        Returns:
            One `Draw` per row. Its log-probabilities are those of the raw logits: before temperature, top-k and top-p.

        Raises:
            FloatingPointError: a row holds NaN or +inf, or nothing but -inf: the engine is at fault, and no token is
                right.
        """
        if not samplings:
            return []
        peaks = logits.amax(dim=-1)  # (rows); NaN if the row holds one
        if not bool(peaks.isfinite().all()):
            bad = int((~peaks.isfinite()).nonzero()[0])
            raise FloatingPointError(
                f"Sampler: the largest logit of row {bad} is {float(peaks[bad])}; nothing to draw from"
            )

        tokens = _largest(logits)  # (rows)
        noisy = [row for row, sampling in enumerate(samplings) if sampling.temperature > 0]
        if noisy:
            positions = positions.tolist() if isinstance(positions, torch.Tensor) else positions
            rows = torch.tensor(noisy, device=logits.device)  # (noisy)
            tokens[rows] = _draw(
                logits[rows], [samplings[row] for row in noisy], [positions[row] for row in noisy]
            )  # (noisy)

        logprobs = logits.float().log_softmax(dim=-1)  # (rows, vocab)
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]  # (rows)
        return [
            Draw(token, logprob, _most_probable(logprobs[row], samplings[row].num_top_logprobs))
            for row, (token, logprob) in enumerate(zip(tokens.tolist(), chosen.tolist(), strict=True))
        ]


def uniform(seeds: Sequence[int], indices: Sequence[int], positions: Sequence[int]) -> torch.Tensor:
    """One number in [0, 1) for each (seed, index, position): a hash, so no order and no neighbour matters.

    splitmix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) over the three
    numbers in turn; the upper 53 bits become the fraction of a float64. A seed counts modulo 2**64.

    Args:
        seeds: (rows) the requests' seeds.
        indices: (rows) each sequence's index within its request.
        positions: (rows) the position that the drawn token will have.

    Returns:
        (rows) float64, on the CPU.
    """
    state = torch.zeros(len(seeds), dtype=torch.int64)  # (rows)
    for numbers in (seeds, indices, positions):
        state = _mix(state + torch.tensor([_int64(number * _GOLDEN + _GOLDEN) for number in numbers]))  # (rows)
    return _shift(state, 11).double() * 2.0**-53  # (rows)


def _int64(number: int) -> int:
    """The number modulo 2**64, as the int64 of the same bits."""
    return ((number + 2**63) & (2**64 - 1)) - 2**63


def _shift(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Right shift that brings in zeros; torch's own brings in copies of an int64's sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: torch.Tensor) -> torch.Tensor:
    """Every bit of the input reaches every bit of the output. Products wrap around at 2**64."""
    x = (x ^ _shift(x, 30)) * _int64(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * _int64(0x94D049BB133111EB)
    return x ^ _shift(x, 31)


def _draw(logits: torch.Tensor, samplings: Sequence[Sampling], positions: Sequence[int]) -> torch.Tensor:
    """A token for each row, all with a temperature above 0. logits: (rows, vocab). Returns (rows) int64."""
    device = logits.device
    noise = uniform([s.seed for s in samplings], [s.index for s in samplings], positions).to(device)  # (rows)
    temperatures = torch.tensor([s.temperature for s in samplings], dtype=torch.float64, device=device)  # (rows)
    # The largest becomes 0 before the division: however small the temperature, nothing rises above exp(0).
    scores = logits.double()  # (rows, vocab)
    scores = (scores - scores.amax(dim=-1, keepdim=True)) / temperatures[:, None]  # (rows, vocab)

    vocab = logits.shape[1]
    rows = [row for row, s in enumerate(samplings) if s.top_k is not None and s.top_k < vocab]
    if rows:
        scores[rows] = _keep_top_k(scores[rows], [samplings[row].top_k or 1 for row in rows])
    probabilities = scores.softmax(dim=-1)  # (rows, vocab)
    rows = [row for row, s in enumerate(samplings) if s.top_p < 1]
    if rows:
        probabilities[rows] = _keep_top_p(probabilities[rows], [samplings[row].top_p for row in rows])

    cdf = probabilities.cumsum(dim=-1)  # (rows, vocab)
    total = cdf[:, -1:].contiguous()  # (rows, 1): below 1 after top-p, which is the same as renormalising
    # The first token whose CDF is above the noise: one of probability 0 never is. Should the product round up to the
    # total, none is above it, and the last token that has a probability is meant: the first one that reaches the total.
    token = torch.searchsorted(cdf, noise[:, None] * total, right=True)  # (rows, 1)
    last = torch.searchsorted(cdf, total)  # (rows, 1)
    return token.minimum(last)[:, 0]


def _keep_top_k(scores: torch.Tensor, ks: list[int]) -> torch.Tensor:
    """-inf for all but each row's k largest, exactly k of them: on a tie the lower ids stay. (rows, vocab)."""
    index = torch.tensor(ks, device=scores.device)[:, None] - 1  # (rows, 1)
    # (rows, 1); topk's values are sound on ties, its ids are not
    kth = scores.topk(max(ks), dim=-1).values.gather(1, index)
    above, tied = scores > kth, scores == kth  # (rows, vocab)
    places = index + 1 - above.sum(dim=-1, keepdim=True)  # (rows, 1): places left for those equal to the k-th
    keep = above | (tied & (tied.cumsum(dim=-1) <= places))  # (rows, vocab)
    return scores.masked_fill(~keep, float("-inf"))


def _keep_top_p(probabilities: torch.Tensor, ps: list[float]) -> torch.Tensor:
    """0 for all but each row's fewest most probable tokens that sum to p or more; lower ids first. (rows, vocab)."""
    top_p = torch.tensor(ps, dtype=torch.float64, device=probabilities.device)[:, None]  # (rows, 1)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)  # (rows, vocab)
    before = ordered.cumsum(dim=-1) - ordered  # (rows, vocab): sum of the more probable ones; 0 for the first
    keep = torch.zeros_like(probabilities, dtype=torch.bool).scatter_(1, ids, before < top_p)  # (rows, vocab)
    return probabilities.masked_fill(~keep, 0.0)


def _largest(logits: torch.Tensor) -> torch.Tensor:
    """The id of each row's largest logit, the lowest on a tie. (rows, vocab) to (rows) int64."""
    if logits.is_cpu and logits.dtype == torch.float32:
        return torch.from_numpy(logits.numpy().argmax(axis=1))  # the same, up to ten times faster than torch's
    return logits.argmax(dim=-1)


def _most_probable(logprobs: torch.Tensor, k: int) -> tuple[tuple[int, float], ...]:
    """The k largest of one row (vocab) with their ids, largest first; the lower id first on a tie."""
    k = min(k, logprobs.shape[0])
    if k == 0:
        return ()
    candidates = (logprobs >= logprobs.topk(k).values[-1]).nonzero()[:, 0]  # (k or more), in order of id
    values, order = logprobs[candidates].sort(descending=True, stable=True)
    return tuple(zip(candidates[order[:k]].tolist(), values[:k].tolist(), strict=True))
