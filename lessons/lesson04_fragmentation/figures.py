"""Figures: what lesson 4 measures, as plain numbers. Knows nothing of how they come about."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE, MAXIMUM, BUDDY, ORACLE, GROWING, PAGED = (
    "whole context", "prompt + maximum", "power of two", "oracle", "growing", "paged",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lost:
    """One short answer, slots: held for it when it ended, filled, and the difference."""

    memory: str
    held: int
    filled: int
    lost: int


@dataclass(frozen=True, slots=True)
class Hole:
    """The request that no hole fits, in slots, and how many steps it waited for its first token."""

    needed: int
    free: int
    largest_hole: int
    step: int
    waited_steps: int
    waited_steps_paged: int


@dataclass(frozen=True, slots=True)
class Shares:
    """One memory under the traffic. Shares of all its slots, over the steps in which somebody waited; they sum to 1.

    `utilisation` is live ÷ held, `live` itself is the pool utilisation. The rest counts over the whole run.
    """

    memory: str
    live: float
    reserved: float
    internal: float
    external: float
    short: float
    utilisation: float
    mean_running: float
    steps: int
    preemptions: int
    copied: int


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Utilisation of reserving, when everyone's maximum is `factor` times the real answer; None: the whole context."""

    factor: float | None
    long_answers: float  # ShareGPT-like
    short_answers: float  # Alpaca-like


@dataclass(frozen=True, slots=True)
class PaperRow:
    """Pool utilisation in percent, as the PagedAttention paper counts it: ours, and what its figure 2 reports."""

    memory: str
    ours: float
    paper: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that the lesson prints.

    Args:
        lost: one short answer, per memory.
        hole: the request that does not fit, under prompt + maximum.
        mean_prompt, mean_answer: of the traffic, answers cut at the maximum.
        shares: the traffic, per memory.
        sweep: utilisation against how far the maximum lies from the truth.
        sweep_paged: paged, under the sweep's long and short answers.
        paper: beside the paper's figures.
    """

    lost: list[Lost]
    hole: Hole
    mean_prompt: float
    mean_answer: float
    shares: list[Shares]
    sweep: list[SweepRow]
    sweep_paged: list[float]
    paper: list[PaperRow]

    def of(self, memory: str) -> Shares:
        """The shares of a memory, by its name."""
        return next(shares for shares in self.shares if shares.memory == memory)
