"""ServingFigures: what came of serving some traffic, in numbers. Plain data, for whoever prints, draws or compares."""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.serving.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Spread:
    """Of many values, in seconds.

    Args:
        mean: their mean.
        p50: what half of them are not above.
        p90: what 90 % of them are not above.
        p99: what 99 % of them are not above.
        longest: the largest.
    """

    mean: float
    p50: float
    p90: float
    p99: float
    longest: float

    @classmethod
    def of(cls, values: Histogram) -> Spread:
        """The spread of what was counted; all of it 0 when nothing was."""
        p50, p90, p99 = (values.quantile(share) for share in (0.5, 0.9, 0.99))
        return cls(values.mean, p50, p90, p99, values.largest)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds as the users of some requests saw them.

    Args:
        num_requests: how many they are.
        first_token: from arrival to the first token.
        between_tokens: from each token to the next.
        normalised: from arrival to the end, divided by the tokens of the answer.
        waiting: from arrival to the first step that computed any of it.
    """

    num_requests: int
    first_token: Spread
    between_tokens: Spread
    normalised: Spread
    waiting: Spread


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """Where the slots of the pool were, as shares of all, averaged over the time in which there was work.

    Args:
        live: held a token.
        reserved: held, empty, and their sequence used them later (the paper's "reservation").
        internal: held, and never used until they were given back.
        external: free, in sum enough for the request that waited, but in no hole that was long enough.
        free: free otherwise, what is cached and held by nobody included.
    """

    live: float
    reserved: float
    internal: float
    external: float
    free: float

    @property
    def utilisation(self) -> float:
        """Live slots ÷ slots held; 1 when nothing was held."""
        held = self.live + self.reserved + self.internal
        return self.live / held if held else 1.0


@dataclass(frozen=True, slots=True)
class ServingFigures:
    """Figures of one policy on one traffic.

    Args:
        policy: its name.
        num_requests: that came and could be served.
        num_refused: that could never fit.
        num_finished: that ended, all of their tokens written.
        prompt_tokens: of the requests that were served.
        output_tokens: of their answers.
        seconds: from the first arrival to the last end.
        busy_seconds: of them, in steps.
        num_steps: steps.
        all: latencies of all requests.
        short: of those whose prompt and answer together are at most `long_from` tokens.
        long: of those that are above it.
        long_from: tokens.
        batch_size: sequences in a step, averaged over the time in steps.
        memory: the four-way split.
        cached_tokens: prompt tokens that were found and not computed.
        recomputed_tokens: computed once, given up, and computed again.
        preemptions: sequences whose blocks were taken back.
        swapped_blocks: in both directions.
        copied_blocks: on the device.
    """

    policy: str
    num_requests: int
    num_refused: int
    num_finished: int
    prompt_tokens: int
    output_tokens: int
    seconds: float
    busy_seconds: float
    num_steps: int
    all: Latencies
    short: Latencies
    long: Latencies
    long_from: int
    batch_size: float
    memory: MemoryShares
    cached_tokens: int
    recomputed_tokens: int
    preemptions: int
    swapped_blocks: int
    copied_blocks: int

    @property
    def hit_rate(self) -> float:
        """Prompt tokens that were found ÷ prompt tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def requests_per_second(self) -> float:
        """Requests finished in a second."""
        return self.num_finished / self.seconds if self.seconds else 0.0

    @property
    def output_tokens_per_second(self) -> float:
        """Tokens written in a second."""
        return self.output_tokens / self.seconds if self.seconds else 0.0
