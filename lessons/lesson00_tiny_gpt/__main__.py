"""Lesson 0, played: a table of pairs forgets the question, a GPT does not; both against the least that is possible.

`--full` and `--judge` are the factory's (`factory.py`): they make and examine the shipped model.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lessons.lesson00_tiny_gpt import LESSON, factory
from lessons.lesson00_tiny_gpt.experiment import Figures, compare, count, num_documents, reckoned_floor
from lessons.lesson00_tiny_gpt.learning_curve import learning_curve
from lessons.lesson00_tiny_gpt.questions import QUESTIONS
from lessons.lesson00_tiny_gpt.small_gpt import BATCH_DOCUMENTS, SHAPE, train_small_gpt
from lessons.lesson00_tiny_gpt.subjects import load_subjects
from lessons.lesson00_tiny_gpt.texts import Texts, make_texts
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape, TrainableGPT
from lessons.runner.stage import Stage, run

FACTORY_OPTIONS = ("--full", "--judge")


def play(stage: Stage) -> Figures:
    """Both acts."""
    texts = make_texts(stage.options.language, *num_documents(stage.small))

    stage.act(1, "a table of pairs")
    stage.say(
        f"The text: {len(texts.training):,} questions with their answers, written just now by this repository's "
        f"generator. That is {texts.num_training_tokens:,} tokens, of a vocabulary of {texts.vocab_size:,}. "
        f"{len(texts.held_out)} more are held out: nobody learns from them, all are examined on them. One of these:"
    )
    stage.say(f"[dim]{escape(texts.example.text)}[/]")
    stage.say(
        f"The generator made its choices for this one with probability 2^{texts.example.log2_probability:.1f}, so "
        f"it costs even the generator {-texts.example.log2_probability:.1f} bits."
    )
    counted = count(texts, stage.mine.module(LESSON))
    stage.say(
        f"A bigram table counts which token follows which: {counted.table.num_pairs:,} different pairs of "
        f"{texts.vocab_size**2:,} possible ones, in {counted.seconds:.2f} s. Then it is asked:"
    )
    stage.say(_dialogue(counted.prompt, counted.answer))
    stage.say("It knows which words follow each other. It has forgotten the question one token after it was put.")
    bigram = stage.predict(
        "bits per token, bigram table",
        round(counted.table.followers_bits, 2),
        hint="If, after a token, k different ones had been seen and all were equally likely, the next would cost log2 "
        f"k bits. Over the whole text that comes to {counted.table.followers_bits:.2f}. But they are not.",
    )
    stage.say(f"Measured on the held-out text: [bold]{counted.bits_per_token:.2f} bits per token[/].")
    floor = stage.predict(
        "bits per token, floor",
        round(reckoned_floor(texts), 3),
        hint=f"The generator chooses 1 of {len(load_subjects(texts.language))} subjects, 1 of "
        f"{len(QUESTIONS[texts.language])} questions, and walks on through the subject's sentences. A document has "
        f"{texts.num_held_out_tokens / len(texts.held_out):.0f} tokens. How many bits of choice is that for each "
        "token?",
    )
    small = stage.predict(
        "bits per token, small GPT",
        round(math.sqrt(counted.bits_per_token * reckoned_floor(texts)), 1),
        hint="It will read the same text once, in half a minute. No arithmetic says how far it comes: below the table, "
        "it is to be hoped, and not below the floor. Ours is the geometric mean of the two.",
    )

    stage.act(2, "a network that looks back")
    stage.say(
        f"A GPT with {SHAPE.n_layer} layer instead of the shipped model's {GPTShape().n_layer}, the same width of "
        f"{SHAPE.n_embd}, and random numbers for weights. {len(texts.training) // BATCH_DOCUMENTS} steps, of "
        f"{BATCH_DOCUMENTS} documents each: predict every token, see how many bits that took, move each weight a "
        "little the way that would have taken fewer."
    )
    model, losses = _train(stage, texts)
    figures = compare(texts, counted, model, losses)
    bits = {row.name: row.bits_per_token for row in figures.rows}
    levels = [(name, bits[name]) for name in ("uniform", "bigram table", "shipped GPT", "floor")]
    stage.picture(learning_curve(stage.theme, losses, levels), "a small GPT learns")
    stage.table(
        f"The same {len(texts.held_out)} documents, {texts.num_held_out_tokens:,} tokens, for each",
        ["predicts by", "looks at", "parameters", "tokens read", "bits per token", "like 1 of"],
        [
            (
                row.name,
                row.looks_at,
                f"{row.parameters:,}" if row.parameters else "—",
                f"{row.training_tokens:,}" if row.training_tokens else "—",
                *_costs(row.name, row.bits_per_token),
            )
            for row in figures.rows
        ],
        highlight="shipped GPT",
    )
    if stage.console.is_terminal:  # another processor's rounding may change a word; not so the rest
        stage.say("What the small one answers:")
        stage.say(_dialogue(counted.prompt, figures.answers["small GPT"]))
    stage.say("And the shipped one, which the other lessons run:")
    stage.say(_dialogue(counted.prompt, figures.answers["shipped GPT"]))
    stage.score(bigram, round(bits["bigram table"], 2))
    stage.score(floor, round(bits["floor"], 3))
    stage.score(small, round(bits["small GPT"], 1))
    return figures


def _train(stage: Stage, texts: Texts) -> tuple[TrainableGPT, list[float]]:
    """Trains, with a bar where somebody sees it."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[bits]}"), TimeElapsedColumn())
    is_seen = stage.console.is_terminal and not stage.console.quiet
    with Progress(*columns, console=stage.console, transient=True, disable=not is_seen) as progress:
        bar = progress.add_task("", total=len(texts.training) // BATCH_DOCUMENTS, bits="")

        def on_step(step: int, bits: float) -> None:
            progress.update(bar, completed=step, bits=f"{bits:.1f} bits per token")

        return train_small_gpt(texts, stage.device, on_step)


def _costs(name: str, bits: float) -> tuple[str, str]:
    """Bits per token, and among how many equally likely tokens that would be a choice.

    The small GPT's go to one digit: a processor that rounds otherwise trains a slightly different model.
    """
    if name == "small GPT":
        return f"{bits:.1f}", f"{2 ** round(bits, 1):,.1f}"
    digits = 0 if bits > 6 else 1 if bits > 1 else 2
    return f"{bits:.2f}", f"{2**bits:,.{digits}f}"


def _dialogue(prompt: str, answer: str) -> str:
    return f"[bold]{escape(prompt)}[/]{escape(answer.rstrip())}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The lesson's own options."""
    parser.add_argument("--language", choices=["en", "zh"], default="en", help="of the text (default en)")
    parser.add_argument("--full", action="store_true", help="retrain the shipped model instead; see factory.py")
    parser.add_argument("--judge", metavar="DIR", help="examine the model in a folder instead; see factory.py")


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line, or the factory's."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if any(argument.split("=")[0] in FACTORY_OPTIONS for argument in arguments):
        return factory.main(arguments)
    return run(LESSON, play, arguments, add_arguments=add_arguments)


if __name__ == "__main__":
    sys.exit(main())
