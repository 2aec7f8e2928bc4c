"""`python -m lessons run 6`: a context copied together, and the same context read where it lies."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from lessons.lesson06_paged_attention import LESSON, plug
from lessons.lesson06_paged_attention.experiment import (
    BLOCK_SIZE,
    HEAD_DIM,
    HEADS,
    PROMPTS,
    Batch,
    Figures,
    Walk,
    Way,
    kernel,
    measure,
    serve,
    walk,
)
from lessons.lesson06_paged_attention.gather_attention import GatherAttention
from lessons.lesson06_paged_attention.picture import picture
from lessons.runner.stage import Stage, run


def play(stage: Stage) -> Figures:
    """The gather and its three passes; then the same step block by block, the loop, the errors, and tiny-gpt."""
    mine = stage.mine.module(LESSON)
    batch = Batch.make(8 if stage.small else 32, 1024, stage.device)
    sequences, context = len(batch.query), int(batch.context_lens[0])
    whose = "yours" if LESSON.number in stage.mine.answers else "ours"
    backend = kernel(stage.device)
    (gather, online, fast), copied = measure(
        [
            ("gather, softmax", GatherAttention().paged_attention, True),
            (f"blocks, in torch ({whose})", mine.paged_attention, True),
            (f"blocks, {backend.name} kernel", backend.paged_attention, False),
        ],
        batch,
    )

    stage.act(1, "copy it together first")
    stage.say(
        f"One decode step in one layer of a 124 M GPT-2: {sequences} sequences, each with one new token and a context "
        f"of {context:,} keys, in blocks of {BLOCK_SIZE} that lie all over the pool. Softmax wants all of a query's "
        "scores, so the naive way copies each context's K and V into one piece and attends to that."
    )
    stage.table(
        "Three passes over the same K and V",
        ("pass", "bytes by formula", "bytes counted"),
        [
            ("read from the pool, block by block", f"{batch.kv_bytes:,}", f"{gather.pool_read_bytes:,}"),
            ("write them in one piece", f"{batch.kv_bytes:,}", f"{gather.copy_written_bytes:,}"),
            ("read that piece", f"{batch.kv_bytes:,}", f"{gather.copy_read_bytes:,}"),
            ("all", f"{3 * batch.kv_bytes:,}", f"{gather.moved_bytes:,}"),
        ],
    )
    stage.say(
        f"It took {gather.milliseconds:.1f} ms: {gather.gigabytes_per_second:.1f} GB/s, where this machine copies at "
        f"{copied / 1e9:.1f} GB/s. Two thirds of the bytes are the copy's. It also takes "
        f"{gather.scratch_bytes / 1e6:.0f} MB of scratch, as much again as the K and V that it is made of."
    )
    bytes_prediction = stage.predict(
        "moved when each block is read where it lies", batch.kv_bytes / 1e6, "MB",
        hint=f"{sequences} x {context} keys x K and V x {HEADS} heads x {HEAD_DIM} numbers x 4 bytes = one pass. The "
        f"gather made three, {gather.moved_bytes / 1e6:.0f} MB. Which of them are left?",
    )  # fmt: skip
    speed_prediction = stage.predict(
        "the kernel's speed, the gather's being 1", gather.moved_bytes / batch.kv_bytes, "×",
        hint="As fast as memory, before and after.",
    )  # fmt: skip

    stage.act(2, "read each block where it lies")
    _compare(stage, (gather, online, fast), copied)
    stage.say(
        "Three numbers for each query are all that is carried from block to block: the maximum m so far, the sum l of "
        "exp(score - m), and acc, the same sum with each value's weight. When m rises, l and acc shrink by exp(m - m')."
    )
    seen = walk(mine.update)
    stage.picture(picture(seen, stage.theme), "one query reads its blocks")
    _say_result(stage, seen)
    _say_errors(stage, (gather, online, fast))

    parts = stage.mine.parts()
    if parts.attention is None:
        parts = plug.plug(parts, mine)
    served = serve(parts, stage.device, 12 if stage.small else 32)
    stage.say(
        f"tiny-gpt, with this attention ({whose}) in the engine: {served.equal_tokens} of {served.tokens} tokens are "
        f"the same as with the engine's own. Asked “{PROMPTS[0]}” it says: “{served.answer.strip()} …”"
    )
    stage.score(bytes_prediction, online.moved_bytes / 1e6)
    stage.score(speed_prediction, gather.milliseconds / fast.milliseconds)
    return Figures(sequences, context, batch.kv_bytes, copied / 1e9, gather, online, fast, seen, served)


def _compare(stage: Stage, ways: Sequence[Way], copied: float) -> None:
    stage.table(
        "One layer, one step",
        ("way", "MB moved", "MB of scratch", "time", "moved", "÷ copy"),
        [
            (
                way.name,
                f"{way.moved_bytes / 1e6:.1f}" + ("" if way.is_counted else "*"),
                f"{way.scratch_bytes / 1e6:.1f}",
                f"{way.milliseconds:.1f} ms",
                f"{way.gigabytes_per_second:.1f} GB/s",
                f"{way.gigabytes_per_second * 1e9 / copied:.2f} ×",
            )
            for way in ways
        ],
    )
    stage.say("[dim]* by formula: what a compiled kernel reads, nobody can count from outside.[/]")


def _say_result(stage: Stage, seen: Walk) -> None:
    keys = sum(turn.keys for turn in seen.turns)
    stage.say(
        f"acc / l begins with {seen.result:.4f} at the end; a softmax over all {keys} keys at once gives "
        f"{seen.at_once:.4f}. Nothing was approximated."
    )


def _say_errors(stage: Stage, ways: Sequence[Way]) -> None:
    step = torch.finfo(torch.float32).eps
    stage.table(
        "Largest difference from the same in float64",
        ("way", "in steps of float32"),
        [(way.name, f"{way.largest_error / step:.1f} ×") for way in ways],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
