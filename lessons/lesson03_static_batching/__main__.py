"""Lesson 3, played: one at a time reads all weights for each single row; a batch shares them, and waits."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lessons.lesson01_token_loop.shape import GPT2_124M, head_weights, layer_weights
from lessons.lesson03_static_batching import LESSON
from lessons.lesson03_static_batching.experiment import (
    ROWS,
    SMALL_WORK,
    WORK,
    Figures,
    Requests,
    StepCost,
    step_costs,
)
from lessons.lesson03_static_batching.timeline import timeline
from lessons.runner.stage import Stage, run
from minipaged.config import ModelConfig


def play(stage: Stage) -> Figures:
    """Both acts."""
    exercise = stage.mine.module(LESSON)
    requests = Requests(SMALL_WORK if stage.small else WORK, stage.device)
    prompts = [len(prompt) for prompt in requests.prompts]
    num_bytes = requests.model.dtype.itemsize * _weights(requests.model.config)

    stage.act(1, "one request at a time")
    alone = requests.serve(1, exercise)
    answers = [len(answer) for answer in alone.answers]
    stage.table(
        "What each of them took",
        ["request", "prompt, tokens", "answer, tokens"],
        [*zip(requests.titles, prompts, answers, strict=True), ("all", sum(prompts), sum(answers))],
    )
    stage.say(
        f"[bold]{alone.steps} forward passes[/], one after the other, for {alone.num_generated} tokens. Each pass "
        f"reads all weights of the model, {num_bytes / 1e6:.1f} MB, and all but {len(prompts)} do it [bold]for a "
        "single row[/]. The last in the line waited for all the others."
    )
    padded, idle = exercise.wasted_rows(prompts, answers)
    first = stage.predict(
        "padded rows",
        padded,
        "rows",
        hint=f"Now all {len(prompts)} go through the model together. Their prompts are made as long as the longest, "
        "and all stay until the longest answer has ended. The table above is enough to reckon what that costs.",
    )
    second = stage.predict("idle rows", idle, "rows")

    stage.act(2, "a static batch")
    sizes = [size for size in (2, 4, 8) if size <= len(prompts)]
    served = [alone, *(requests.serve(size, exercise) for size in sizes)]
    together = served[-1]
    stage.table(
        "The same requests",
        ["batch", "passes", "rows", "padded", "idle", "of use", "time", "speed"],
        [
            (
                way.batch_size,
                way.steps,
                way.rows,
                way.padded,
                way.idle,
                f"{way.useful:.0%}",
                f"{way.seconds:.2f} s",
                f"{way.num_generated / way.seconds:.0f} tokens/s",
            )
            for way in served
        ],
    )
    stage.picture(timeline(stage.theme, prompts, answers, min(stage.console.width, 100)), "a static batch")
    costs = () if stage.small else step_costs(ROWS, stage.device)
    if costs:
        _tell_costs(stage, costs)
    same = all(way.answers == alone.answers for way in served)
    stage.say(
        f"All ways gave {'the same answers, token for token' if same else '[red]different answers[/]'}. "
        f"{together.useful:.0%} of the rows were of use; {together.padded} were padding, {together.idle} idle."
    )
    stage.score(first, together.padded)
    stage.score(second, together.idle)
    return Figures(
        prompt_lengths=tuple(prompts),
        answer_lengths=tuple(answers),
        predicted_padded=padded,
        predicted_idle=idle,
        served=tuple(served),
        same_answers=same,
        step_costs=costs,
    )


def _weights(config: ModelConfig) -> int:
    """As lesson 1 counts them: of the embeddings a pass looks up a few rows, and the head is read whole."""
    return config.num_layers * layer_weights(config) + head_weights(config)


def _tell_costs(stage: Stage, costs: Sequence[StepCost]) -> None:
    millions = round(_weights(GPT2_124M) / 1e6)
    one = costs[0].seconds
    stage.table(
        f"One step of a random model of {millions} million weights, by the rows that share it",
        ["rows", "step", "per row", "as one row's step"],
        [
            (
                cost.rows,
                f"{cost.seconds * 1e3:.0f} ms",
                f"{cost.seconds / cost.rows * 1e3:.1f} ms",
                f"{cost.seconds / one:.1f} ×",
            )
            for cost in costs
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
