"""The factory's command line: how the shipped model was made, and how to make it again.

`--full` makes tiny-gpt from nothing, `--judge` examines a model, `--small` is a try of ten seconds. It knows the
order of the work and nothing of the work itself.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch

from lessons.lesson00_tiny_gpt.judge import judge
from lessons.lesson00_tiny_gpt.model_folder import save_model_folder
from lessons.lesson00_tiny_gpt.token_stream import make_token_stream
from lessons.lesson00_tiny_gpt.tokenizer_training import train_tokenizer
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape
from lessons.lesson00_tiny_gpt.training import TrainingPlan, train

ASSETS = Path(__file__).parents[2] / "minipaged" / "model" / "assets" / "tiny-gpt"
FULL_TEXT_TOKENS = 8_000_000
SMALL_TEXT_TOKENS = 100_000


def second_course(first: TrainingPlan) -> TrainingPlan:
    """Returns the plan of the second course: shorter and gentler, for a text with questions that are put freely.

    The first course teaches what is known about the subjects; this one teaches to look for the subject's name in a
    question, however it is asked.
    """
    return replace(first, seed=first.seed + 1, steps=1500, peak_learning_rate=2e-3, warmup_steps=100)


def make(plan: TrainingPlan, text_tokens: int, out: Path, checkpoints: Path | None, second: bool) -> list[float]:
    """Makes tokenizer, texts and model from a plan and saves the folder; returns the losses in bits per token.

    Args:
        plan: Of the first course.
        text_tokens: Length of each course's text.
        out: Where to save.
        checkpoints: A folder for both courses' checkpoints, or None.
        second: Whether there is a second course.
    """

    def log(line: str) -> None:
        print(line, flush=True)  # a run in the background is read while it runs

    def folder(course: int) -> Path | None:
        return checkpoints / f"course{course}" if checkpoints is not None else None

    # Tokenizer, training texts and windows each have a seed of their own, all of them derived from one.
    tokenizer = train_tokenizer(seed=10 * plan.seed + 1)
    stream = make_token_stream(10 * plan.seed + 2, tokenizer, text_tokens)
    model, losses = train(plan, stream, checkpoint_folder=folder(1), log=log)
    if second:
        stream = make_token_stream(10 * plan.seed + 3, tokenizer, text_tokens, freely=True)
        model, more_losses = train(second_course(plan), stream, model=model, checkpoint_folder=folder(2), log=log)
        losses += more_losses
    save_model_folder(model, tokenizer, out)
    log(f"saved {out}")
    return losses


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status: 0, or 1 for a model that is not accepted."""
    parser = argparse.ArgumentParser(
        prog="python -m lessons.lesson00_tiny_gpt.factory", description="Make or judge tiny-gpt."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--full", action="store_true", help="make the text, the tokenizer and the model; judge; save")
    what.add_argument("--small", action="store_true", help="ten seconds of the same, with a smaller model; needs --out")
    what.add_argument("--judge", metavar="DIR", type=Path, help="judge the model in DIR")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where to save (default for --full: the shipped model)")
    parser.add_argument("--checkpoints", metavar="DIR", type=Path, help="keep a checkpoint there, and resume from it")
    parser.add_argument("--steps", type=int, help="training steps")
    parser.add_argument("--minutes", type=float, help="train for so long instead; not reproducible")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    torch.set_num_threads(options.threads)
    if options.judge is not None:
        return 0 if judge(options.judge) else 1
    if options.small:
        if options.out is None:
            parser.error("--small needs --out DIR, so that it does not replace the shipped model")
        shape = GPTShape(n_embd=64, n_layer=2, n_head=2)
        plan = TrainingPlan(
            shape=shape,
            steps=options.steps or 60,
            minutes=options.minutes,
            seed=options.seed,
            warmup_steps=10,
            log_every=10,
        )
        make(plan, SMALL_TEXT_TOKENS, options.out, options.checkpoints, second=False)
        return 0
    plan = TrainingPlan(steps=options.steps or TrainingPlan().steps, minutes=options.minutes, seed=options.seed)
    out = options.out or ASSETS
    make(plan, FULL_TEXT_TOKENS, out, options.checkpoints, second=options.minutes is None)
    return 0 if judge(out) else 1


if __name__ == "__main__":
    sys.exit(main())
