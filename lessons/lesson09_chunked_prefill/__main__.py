"""Lesson 9, played: a long prompt stops those who write; then it comes in pieces, and nobody notices much."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lessons.lesson09_chunked_prefill import LESSON
from lessons.lesson09_chunked_prefill.experiment import (
    BUDGET,
    BUDGETS,
    PROMPT_TOKENS,
    SMALL_PROMPT_TOKENS,
    WRITERS,
    Arrival,
    Figures,
    MakeScheduler,
    Step,
    agree,
    story,
    sweep,
)
from lessons.lesson09_chunked_prefill.reckoning import gap_of_a_budget, gap_of_prefill_first, steps_of_a_budget
from lessons.lesson09_chunked_prefill.step_bars import legend, step_bars
from lessons.runner.stage import Stage, run
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme, many


def play(stage: Stage) -> Figures:
    """Both acts."""
    made_of: MakeScheduler = stage.mine.parts().scheduler
    prompt, writers = SMALL_PROMPT_TOKENS if stage.small else PROMPT_TOKENS, len(WRITERS)
    naive, chunked = story(prompt, made_of, stage.device)

    stage.act(1, "prefill first")
    stage.say(
        f"A, B and C are being written, one token each in every step. Before step {naive.arrived} D comes, with a "
        f"prompt of {prompt} tokens. Its asker is in a hurry, so the prompt is computed at once, whole, in a step of "
        "its own."
    )
    stage.table(
        "Steps around D's arrival",
        ["step", "tokens of A, B, C", "tokens of D", "time"],
        [(step.number, step.decode, step.prompt, f"{step.seconds * 1e3:.1f} ms") for step in _around(naive)],
        highlight=naive.arrived,
    )
    reckoned = gap_of_prefill_first(prompt, writers)
    before = min(step.seconds for step in naive.steps[: naive.arrived - 1])
    stage.say(
        f"In step {naive.arrived} nobody but D got a token. Between two tokens of A, [bold]{naive.gap_tokens} tokens "
        f"were computed[/]: {prompt} of D's prompt, and {writers + 1} of the step in which A had its turn again. For "
        f"A's reader that was a pause of {naive.gap_seconds * 1e3:.1f} ms, where there had been "
        f"{before * 1e3:.1f} ms from token to token."
    )
    gap, steps = gap_of_a_budget(prompt, writers, BUDGET), steps_of_a_budget(prompt, writers, BUDGET)
    first = stage.predict(
        "longest gap",
        gap,
        "tokens",
        hint=f"Now a step computes {BUDGET} tokens at most, its budget. A, B and C have one each; what is left, D's "
        "prompt may have. How many tokens are computed between two tokens of A, at most? And in how many steps does D "
        "have its first token?",
    )
    second = stage.predict("until D's first token", steps, "steps")

    stage.act(2, "a budget of tokens")
    stage.picture(_bars(stage.theme, naive, chunked, min(stage.console.width, 100)), "prefill first, and with a budget")
    stage.table(
        "What the arrival cost A, B and C, and how long D waited",
        ["way", "longest gap", "", "D's first token", ""],
        [
            (
                way.name,
                f"{way.gap_tokens} tokens",
                f"{way.gap_seconds * 1e3:.1f} ms",
                many(way.first_steps, "step"),
                f"{way.first_seconds * 1e3:.1f} ms",
            )
            for way in (naive, chunked)
        ],
    )
    runs = () if stage.small else sweep(BUDGETS, made_of, stage.device)
    if runs:
        _tell_sweep(stage, runs)
    same = agree(naive, chunked)
    stage.say(f"Both ways gave {'the same answers, token for token' if same else '[red]different answers[/]'}.")
    stage.score(first, chunked.gap_tokens)
    stage.score(second, chunked.first_steps)
    return Figures(
        prompt_tokens=prompt,
        writers=writers,
        predicted_gap_first=reckoned,
        predicted_gap=gap,
        predicted_steps=steps,
        prefill_first=naive,
        chunked=chunked,
        same_answers=same,
        sweep=runs,
    )


def _around(arrival: Arrival) -> Sequence[Step]:
    """Two steps before the prompt came, until a step after its first token."""
    return arrival.steps[arrival.arrived - 3 : arrival.arrived + arrival.first_steps]


def _bars(theme: Theme, naive: Arrival, chunked: Arrival, width: int) -> Picture:
    lines = []
    most = max(naive.gap_tokens, chunked.gap_tokens)
    for arrival, budget in ((naive, None), (chunked, chunked.budget)):
        facts = f"longest gap {arrival.gap_tokens} tokens, D's first token after {many(arrival.first_steps, 'step')}"
        lines += step_bars(theme, arrival.name, facts, _around(arrival), budget, most, width).lines
    return Picture([*lines, legend(theme)])


def _tell_sweep(stage: Stage, runs: Sequence[Arrival]) -> None:
    first = runs[0]
    stage.table(
        f"The same with a random model of 12.6 million weights: {len(WRITERS)} write, {PROMPT_TOKENS} tokens come",
        ["budget", "longest gap", "", "first token", "", "as prefill first"],
        [
            (
                way.name,
                f"{way.gap_tokens} tokens",
                f"{way.gap_seconds * 1e3:.0f} ms",
                many(way.first_steps, "step"),
                f"{way.first_seconds * 1e3:.0f} ms",
                f"{way.first_seconds / first.first_seconds:.1f} ×",
            )
            for way in runs
        ],
        highlight=str(BUDGET),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
