"""`python -m lessons.lesson01_token_loop`: a loop that throws most of its work away; then what one step costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.markup import escape

from lessons.lesson01_token_loop import LESSON, experiment
from lessons.lesson01_token_loop.experiment import Figures, StepFigures
from lessons.lesson01_token_loop.picture import step_picture
from lessons.lesson01_token_loop.shape import GPT2_124M, head_weights, layer_weights
from lessons.runner.stage import Stage, run


def play(stage: Stage) -> Figures:
    """Both acts."""
    exercise = stage.mine.module(LESSON)

    stage.act(1, "everything again, for every token")
    writing = experiment.write(exercise, small=stage.small, device=stage.device)
    naive, real = writing.loops
    num_prompt = writing.prompt_tokens
    stage.say(f"[bold]{writing.prompt}[/] {escape(writing.text)}")
    stage.say(
        "A pass takes all tokens so far and makes [bold]logits[/]: for each token, a score for every word of the "
        f"vocabulary as the one that follows it. The prompt has {num_prompt} tokens, so the first pass makes "
        f"{num_prompt} rows of logits, and each pass one more than that before it:"
    )
    last = len(naive.token_ids)
    stage.table(
        "Logits of all rows: what each pass did",
        ("token of the answer", "rows computed", "rows of logits made", "looked at"),
        [(i, num_prompt + i - 1, num_prompt + i - 1, 1) for i in (1, 2, last // 2, last)],
    )
    stage.say(
        f"Together {naive.rows:,} rows of logits, of which {naive.passes} were looked at: the last of each pass. "
        "The others score what comes after tokens that have one after them already."
    )
    shape, new, context = GPT2_124M, experiment.PREFILL_TOKENS, experiment.PREFILL_TOKENS + 1
    stage.say(
        "Now one step alone, of a model with the shape of GPT-2's smallest: "
        f"{shape.num_layers} layers, {shape.num_heads} heads of {shape.head_dim}, float32. A [bold]prefill[/] takes a "
        f"prompt of {new} tokens at once; the [bold]decode[/] after it takes 1 token, if what attention needs of the "
        f"{new} before it has been kept. Both make one row of logits."
    )
    hint = (
        f"A layer multiplies each row with {layer_weights(shape) / 1e6:.2f} M weights, the head a row with "
        f"{head_weights(shape) / 1e6:.1f} M. A multiplication and an addition are two operations."
    )
    prefill_flops = stage.predict(
        f"arithmetic of a prefill of {new} tokens", exercise.step_flops(shape, new, new) / 1e9, "GFLOP", hint=hint
    )
    decode_flops = stage.predict("arithmetic of a decode", exercise.step_flops(shape, 1, context) / 1e9, "GFLOP")
    decode_bytes = stage.predict(
        "memory that a decode moves", exercise.step_bytes(shape, 1, context, 4) / 1e6, "MB",
        hint="Every weight is read once, 4 bytes each. K and V of the context are few beside them.",
    )  # fmt: skip

    stage.act(2, "one row of logits; and one step, counted")
    stage.table(
        f"The same answer of {last} tokens, two ways",
        ("next_logits makes", "rows", "rows of logits", "GFLOP", "seconds"),
        [
            (loop.name, f"{loop.rows:,}", f"{loop.logit_rows:,}", f"{loop.flops / 1e9:.2f}", f"{loop.seconds:.2f} s")
            for loop in writing.loops
        ],
    )
    same = "The same tokens" if naive.token_ids == real.token_ids else "Not the same tokens"
    stage.say(
        f"{same}. What is left is still too much: {real.rows:,} rows went through the layers, most of them again "
        f"and again. One prefill and {last - 1} decodes would take {writing.cached_flops / 1e9:.2f} GFLOP; lesson 2 "
        "does it."
    )
    figures = experiment.measure(exercise, writing, small=stage.small, device=stage.device)
    stage.table(
        "One step: what the model really did, counted",
        ("model and step", "rows", "MFLOP", "MB moved", "FLOP per byte"),
        [
            (
                f"{step.model} {step.name}",
                step.new_tokens,
                f"{step.counted_flops / 1e6:,.1f}",
                f"{step.counted_bytes / 1e6:,.1f}",
                f"{step.counted_flops / step.counted_bytes:.2f}",
            )
            for step in figures.steps
        ],
        highlight="124 M decode",
    )
    large = [step for step in figures.steps if step.model == "124 M"]
    stage.picture(step_picture(large, stage.theme), "one prefill and one decode")
    stage.say(
        f"This machine multiplies at {figures.flops_per_second / 1e9:.0f} GFLOP/s and reads at "
        f"{figures.bytes_per_second / 1e9:.1f} GB/s at best. No step can be faster than either of the two allows:"
    )
    stage.table(
        "One step: the two limits, and the time",
        ("model and step", "arithmetic", "memory", "meets first", "took"),
        [_times(step) for step in figures.steps],
        highlight="124 M decode",
    )
    stage.say(
        "Weights that are read for one row can serve more rows. Requests that decode at the same time bring one row "
        "each:"
    )
    stage.table(
        "Requests that share a decode, 124 M, reckoned",
        ("requests", "MB moved", "MB per token", "FLOP per byte"),
        [
            (
                batch.requests,
                f"{batch.num_bytes / 1e6:,.0f}",
                f"{batch.num_bytes / batch.requests / 1e6:,.0f}",
                f"{batch.flops / batch.num_bytes:.1f}",
            )
            for batch in figures.batches
        ],
    )
    prefill, decode = large
    stage.score(prefill_flops, prefill.counted_flops / 1e9)
    stage.score(decode_flops, decode.counted_flops / 1e9)
    stage.score(decode_bytes, decode.counted_bytes / 1e6)
    return figures


def _times(step: StepFigures) -> tuple[str, ...]:
    took = "not run" if step.seconds is None else f"{1e3 * step.seconds:.2f} ms"
    return (
        f"{step.model} {step.name}",
        f"{1e3 * step.compute_seconds:.2f} ms",
        f"{1e3 * step.memory_seconds:.2f} ms",
        step.limit,
        took,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
