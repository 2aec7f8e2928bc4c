"""`python -m lessons.lesson02_kv_cache`: an answer that is computed again and again, then one that is remembered."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.markup import escape

from lessons import lesson01_token_loop
from lessons.lesson02_kv_cache import LESSON, experiment
from lessons.lesson02_kv_cache.experiment import Figures, Pair, Tiny, TokenBytes, Way
from lessons.lesson02_kv_cache.picture import both_pictures, key, passes_picture
from lessons.runner.stage import Stage, run
from minipaged.viz.theme import Theme

FIRST_PASSES = 12
LONG_TEXT = 2048
WHOLE_ANSWER = 162  # tokens, until tiny-gpt would draw eos


def play(stage: Stage) -> Figures:
    """Both acts."""
    exercise, loop = stage.mine.module(LESSON), stage.mine.module(lesson01_token_loop.LESSON)
    theme = stage.theme
    tiny = Tiny(stage.device)
    prompt, max_tokens = len(tiny.prompt), 24 if stage.small else WHOLE_ANSWER

    stage.act(1, "every token, in every pass")
    begun = experiment.write_naively(tiny.model, loop, tiny.prompt, FIRST_PASSES)
    stage.say(
        f"[bold]{theme.text(experiment.PROMPT)}[/] {_text(theme, tiny, begun)} ...\n"
        f"The prompt has {prompt} tokens. Lesson 1's loop has drawn {FIRST_PASSES} more, each from a pass over all "
        "tokens so far:"
    )
    stage.picture(passes_picture(begun.rows, prompt, theme, "pass, tokens computed") + key(theme))
    again = sum(begun.rows) - experiment.cached_rows(prompt, FIRST_PASSES)
    stage.say(
        f"{sum(begun.rows)} rows went through the layers for {experiment.cached_rows(prompt, FIRST_PASSES)} tokens: "
        f"[bold]{again} of them again[/]. Nothing had changed about them. A token sees only tokens before it, so its "
        "key and its value in every layer are what they were."
    )
    naive_prediction = stage.predict(
        "tokens computed, nothing kept",
        experiment.naive_rows(prompt, max_tokens),
        "tokens",
        hint=f"For an answer of {max_tokens} tokens: {max_tokens} passes, over {prompt}, {prompt + 1}, … tokens.",
    )
    cached_prediction = stage.predict(
        "tokens computed, K and V kept",
        experiment.cached_rows(prompt, max_tokens),
        "tokens",
        hint="The first pass computes the prompt; how many tokens are new to each of the others?",
    )
    opt, _ = experiment.SHAPES["OPT-13B"]
    bytes_prediction = stage.predict(
        "K and V of one token of OPT-13B, in float16",
        exercise.kv_bytes_per_token(opt, 2) / 1024,
        "KiB",
        hint=f"It has {opt.num_layers} layers of {opt.num_kv_heads} heads of {opt.head_dim}. A float16 has 2 bytes.",
    )

    stage.act(2, "each token once")
    naive = experiment.write_naively(tiny.model, loop, tiny.prompt, max_tokens)
    cached = experiment.write_cached(tiny.model, loop, exercise, tiny.prompt, max_tokens)
    pair = Pair("tiny-gpt", prompt, naive, cached)
    stage.say(_text(theme, tiny, cached))
    stage.picture(
        both_pictures(naive.rows[:FIRST_PASSES], cached.rows[:FIRST_PASSES], prompt, theme), "tokens computed per pass"
    )
    stage.table(
        "The same loop, pass by pass",
        ("pass", "tokens, nothing kept", "tokens, kept", "MFLOP, nothing kept", "MFLOP, kept"),
        [
            (
                i + 1,
                naive.rows[i],
                cached.rows[i],
                f"{naive.flops[i] / 1e6:.1f}",
                f"{cached.flops[i] / 1e6:.1f}",
            )
            for i in (0, 1, max_tokens // 2 - 1, max_tokens - 1)
        ],
    )
    large = None if stage.small else experiment.large_pair(loop, exercise, stage.device)
    pairs = [pair] if large is None else [pair, large]
    stage.table(
        "The same answers, two ways",
        ("prompt + answer", "kept", "computed", "GFLOP", "seconds", "last token"),
        [row for each in pairs for row in _rows(each)],
        highlight="",
    )
    same = all(each.naive.token_ids == each.cached.token_ids for each in pairs)
    stage.say(
        f"{'The same tokens both ways' if same else '[red]Not the same tokens[/]'}. What was kept for tiny-gpt: "
        f"{cached.kept_bytes / 1e6:.2f} MB for {prompt + max_tokens - 1} tokens. And in larger models:"
    )
    sizes = experiment.token_bytes(exercise, tiny.config)
    stage.table(
        "Memory for K and V; shape is layers × KV heads × head_dim",
        ("model", "shape", "bytes a number", "KiB a token", f"MiB for {LONG_TEXT:,}"),
        [_size_row(size) for size in sizes],
        highlight="OPT-13B",
    )
    stage.score(naive_prediction, sum(naive.rows))
    stage.score(cached_prediction, sum(cached.rows))
    stage.score(bytes_prediction, next(size.in_tensor for size in sizes if size.model == "OPT-13B") / 1024)
    return Figures(_text(Theme(), tiny, cached), pair, large, sizes)


def _text(theme: Theme, tiny: Tiny, way: Way) -> str:
    """What was written; an answer of some length may end inside a character, which is left out."""
    text = tiny.tokenizer.decode(way.token_ids)
    return escape(theme.text(text.strip().rstrip("\N{REPLACEMENT CHARACTER}")))


def _rows(pair: Pair) -> list[tuple[object, ...]]:
    return [
        (
            f"{pair.model}, {pair.prompt_tokens} + {len(way.token_ids)}",
            "nothing" if way is pair.naive else "K and V",
            f"{sum(way.rows):,}",
            f"{sum(way.flops) / 1e9:.2f}",
            f"{way.seconds:.2f} s",
            f"{1e3 * way.last_seconds:.1f} ms",
        )
        for way in (pair.naive, pair.cached)
    ]


def _size_row(size: TokenBytes) -> tuple[object, ...]:
    kib = size.in_tensor / 1024
    shape = f"{size.layers} × {size.kv_heads} × {size.head_dim}"
    return (size.model, shape, size.itemsize, f"{kib:g}", f"{kib * LONG_TEXT / 1024:,.0f}")


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
