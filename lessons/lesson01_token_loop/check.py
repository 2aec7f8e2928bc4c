"""The checks of lesson 1: a loop over scripted models, and counts against torch's own counter."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from types import ModuleType

import torch

from lessons.lesson01_token_loop.one_step import OneStep, count, shape_only
from lessons.lesson01_token_loop.shape import head_weights, layer_weights
from lessons.runner.checks import Wrong, expect, expect_close
from minipaged.config import ModelConfig

MISCONCEPTIONS = {
    "first_row": "You draw from the first row. Row j scores what comes after token j, so the first row guesses the "
    "prompt's second token; what comes after the last token is in the last row.",
    "all_rows": "You draw from all rows at once. `argmax` over the whole tensor finds the surest row and counts across "
    "rows; what comes next is said by the last row alone.",
    "eos_lost": "You drop the token that ends the answer. It was drawn like any other, it was paid for, and whoever "
    "called must see that the answer ended by itself; leaving it out of the text is the tokenizer's business.",
    "eos_missed": "You go on after eos. That token is the model's way to say that the answer is complete; what it "
    "writes behind it is about nothing.",
    "eos_of_the_prompt": "You look for eos among all tokens. One in the prompt, say between two documents, ends no "
    "answer: only a token that was drawn can.",
    "one_token_too_many": "You draw one token more than max_tokens. Look before drawing how many there are: a loop "
    "that compares after the append with `>` and not `>=` is one too late.",
    "prompt_counted": "You count the prompt against max_tokens. It limits the answer: a long prompt must not leave "
    "less of it.",
    "prompt_returned": "You return the prompt as well. The caller has it; the answer is what was drawn.",
    "newest_only": "You run the model over the newest token alone, as if it remembered the others. A pass without a "
    "cache knows only what it is given, so it takes all tokens each time. (Lesson 2 gives it a memory.)",
    "last_token_fed_back": "You run the model once more after the last token. Nobody looks at those logits: an answer "
    "of n tokens takes n passes. (It is also why prompt + answer - 1 positions are enough.)",
    "one_flop_per_weight": "You count a multiplication with its addition as one operation. Makers of processors count "
    "two, and so must you, or every comparison with their figures is off by 2.",
    "context_forgotten": "You let a new row meet only the new keys. It meets those of the whole context, so attention "
    "grows with every token that is written, although each decode brings but one.",
    "scores_only": "You count the scores and forget the weighted sum of the values, which is as much again: for each "
    "query and key, head_dim multiplications for the score and head_dim for the value.",
    "attention_by_kv_heads": "You count attention by KV heads. Query heads that share a key still do their own "
    "arithmetic with it: sharing saves bytes, not FLOPs.",
    "head_for_every_row": "You make logits of every new row. Only rows that a token is drawn from need them: one in a "
    "prefill, however long the prompt. The head is the widest matrix.",
    "one_layer": "You count one layer somewhere. Every layer has matrices of its own, and attention of its own; only "
    "the head is there once.",
    "weights_per_token": "You read the weights once for each token. A step reads a weight once and uses it for all its "
    "rows: that is why a prefill is cheap per token and a decode, alone, is dear.",
    "only_keys": "You count only K. The values are as large as the keys and are read as well: a factor of 2.",
    "cached_by_query_heads": "You count K and V by query heads. There is one key and one value per KV head, and with "
    "grouped heads these are fewer: that is what grouping is for.",
    "new_not_written": "You count what attention reads, and forget that K and V of the new tokens have to be written "
    "first. It is one write in a decode, and as much as is read in a prefill.",
    "earlier_not_read": "You count the K and V of the new tokens only. Attention reads those of the whole context, in "
    "every step again.",
}


class Script:
    """`next_logits` that counts: after token t comes t + 1, modulo ten. It keeps what it was given.

    The first row is the surest, so that who looks at all rows at once is led astray.
    """

    def __init__(self, all_rows: bool = True) -> None:
        self.all_rows = all_rows
        self.calls: list[list[int]] = []

    def __call__(self, token_ids: Sequence[int]) -> torch.Tensor:
        self.calls.append([int(token) for token in token_ids])
        logits = torch.zeros(len(token_ids), 10)  # (tokens, vocab)
        for row, token in enumerate(self.calls[-1]):
            logits[row, (token + 1) % 10] = 10.0 if row == len(token_ids) - 2 else 5.0
        return logits if self.all_rows else logits[-1:]


def task_1(exercise: ModuleType) -> None:
    """The loop."""
    _loop(exercise, [2, 7, 3], 1, None, [4], {"first_row": [3], "all_rows": [18], "prompt_returned": [2, 7, 3, 4],
          "prompt_counted": [], "one_token_too_many": [4, 5]})  # fmt: skip
    _loop(exercise, [7, 3], 4, None, [4, 5, 6, 7], {"one_token_too_many": [4, 5, 6, 7, 8], "prompt_counted": [4, 5]})
    _loop(exercise, [7, 3], 9, 5, [4, 5], {"eos_lost": [4], "eos_missed": [4, 5, 6, 7, 8, 9, 0, 1, 2]})
    _loop(exercise, [5, 3], 3, 5, [4, 5], {"eos_of_the_prompt": []}, also="eos_of_the_prompt")
    _loop(exercise, [5], 3, 5, [6, 7, 8], {"eos_of_the_prompt": []}, also="eos_of_the_prompt")
    _loop(exercise, [3], 3, 6, [4, 5, 6], {"eos_lost": [4, 5]})  # eos and max_tokens at once
    _loop(exercise, [7, 3], 2, None, [4, 5], {}, all_rows=False)

    generator = random.Random(1)
    for _ in range(50):
        prompt = [generator.randrange(10) for _ in range(generator.randint(1, 6))]
        max_tokens, eos = generator.randint(1, 12), generator.choice([None, *range(10)])
        expected = [(prompt[-1] + i) % 10 for i in range(1, max_tokens + 1)]
        if eos in expected:
            expected = expected[: expected.index(eos) + 1]
        _loop(exercise, prompt, max_tokens, eos, expected, {}, all_rows=generator.random() < 0.5)


def _loop(
    exercise: ModuleType,
    prompt: list[int],
    max_tokens: int,
    eos: int | None,
    expected: list[int],
    misled: Mapping[str, list[int]],
    *,
    all_rows: bool = True,
    also: str = "",
) -> None:
    """One answer; `misled` says what comes out of which misconception, `also` which one is likely otherwise."""
    script, given = Script(all_rows), list(prompt)
    what = f"generate({prompt}, max_tokens={max_tokens}, eos={eos}) of a model that counts"
    got = exercise.generate(script, given, max_tokens, eos)
    if not isinstance(got, list) or not all(type(token) is int for token in got):
        raise Wrong(f"{what}: the answer must be a list of ints", got, expected)
    because = next((name for name, tokens in misled.items() if got == tokens), also)
    # A scripted model that is given one token has no earlier rows: look first at what it was given.
    if len(script.calls) > 1 and len(script.calls[1]) == 1:
        expect(f"{what}: its second pass ran over", script.calls[1], [*prompt, *expected[:1]],
               MISCONCEPTIONS["newest_only"])  # fmt: skip
    expect(what, got, expected, MISCONCEPTIONS.get(because, ""))
    expect(f"{what}: the prompt afterwards", given, prompt)
    passes = [[*prompt, *expected[:i]] for i in range(len(expected))]
    if len(script.calls) > len(passes) and script.calls[: len(passes)] == passes:
        raise Wrong(f"{what}: forward passes", len(script.calls), len(passes), MISCONCEPTIONS["last_token_fed_back"])
    expect(f"{what}: the tokens of each pass", script.calls, passes)


#: Small enough to reckon by hand: 128 weights in the layer, 40 in the head.
PLAIN = ModelConfig(vocab_size=10, max_positions=64, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=2,
                    hidden_size=4, intermediate_size=8)  # fmt: skip
#: Two query heads share one KV head: 112 weights in the layer.
GROUPED = ModelConfig(vocab_size=10, max_positions=64, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=2,
                      hidden_size=4, intermediate_size=8)  # fmt: skip


def task_2(exercise: ModuleType) -> None:
    """FLOPs of a step."""

    def flops(what: str, config: ModelConfig, new: int, context: int, expected: int, misled: Mapping[int, str]) -> None:
        _number(what, exercise.step_flops(config, new, context), expected, misled)

    one = "1 layer of 128 weights, 2 heads of head_dim 2, a head of 40 weights: FLOPs of"
    flops(f"{one} 1 new token, context 1", PLAIN, 1, 1, 256 + 16 + 80,
          {128 + 8 + 40: "one_flop_per_weight", 256 + 8 + 80: "scores_only"})  # fmt: skip
    flops(f"{one} 1 new token, context 5", PLAIN, 1, 5, 256 + 80 + 80,
          {256 + 16 + 80: "context_forgotten", 256 + 80: "context_forgotten"})  # fmt: skip
    flops(f"{one} 3 new tokens, context 3, logits of 1 row", PLAIN, 3, 3, 768 + 144 + 80,
          {768 + 144 + 240: "head_for_every_row"})  # fmt: skip
    flops("the same with 1 KV head (112 weights): FLOPs of 1 new token, context 5", GROUPED, 1, 5, 224 + 80 + 80,
          {224 + 40 + 80: "attention_by_kv_heads"})  # fmt: skip
    _number(f"{one} 3 new tokens, logits of all 3 rows", exercise.step_flops(PLAIN, 3, 3, 3), 768 + 144 + 240, {})
    two = replace(PLAIN, num_layers=2)
    flops("the same with 2 layers of 128 weights: FLOPs of 1 new token, context 5", two, 1, 5, 512 + 160 + 80,
          {256 + 160 + 80: "one_layer", 512 + 80 + 80: "one_layer", 256 + 80 + 80: "one_layer"})  # fmt: skip
    for config, new, context in _random_steps(2):
        counted = count(OneStep(shape_only(config), new, context)).flops
        flops(f"{_shape(config)}: FLOPs of {new} new tokens, context {context}, by torch's counter", config, new,
              context, counted, {})  # fmt: skip


def task_3(exercise: ModuleType) -> None:
    """Bytes of a step."""

    def num_bytes(
        what: str, config: ModelConfig, new: int, context: int, expected: int, misled: Mapping[int, str]
    ) -> None:
        _number(what, exercise.step_bytes(config, new, context, 4), expected, misled)

    one = "128 + 40 weights, 8 numbers of K and V a token, float32: bytes of"
    # Context 5 first: with context 1, who counts only K and who only reads what is kept arrive at the same number.
    num_bytes(f"{one} 1 new token, context 5", PLAIN, 1, 5, 672 + 32 + 160,
              {672 + 16 + 80: "only_keys", 672 + 160: "new_not_written",
               672 + 32: "earlier_not_read", 672 + 64: "earlier_not_read"})  # fmt: skip
    num_bytes(f"{one} 1 new token, context 1", PLAIN, 1, 1, 672 + 64, {})
    num_bytes(f"{one} 3 new tokens, context 3", PLAIN, 3, 3, 672 + 192,
              {3 * 672 + 192: "weights_per_token"})  # fmt: skip
    num_bytes("112 + 40 weights, 2 query heads on 1 KV head: bytes of 1 new token, context 5", GROUPED, 1, 5,
              608 + 16 + 80, {608 + 32 + 160: "cached_by_query_heads"})  # fmt: skip
    _number(f"{one} 1 new token, context 5, but in float16", exercise.step_bytes(PLAIN, 1, 5, 2), 432, {})
    for config, new, context in _random_steps(3):
        weights = sum(
            module.weight.numel()
            for module in shape_only(config).modules()
            if isinstance(module, torch.nn.Linear)  # norms and embeddings are left out, as are the biases
        )
        kv = count(OneStep(shape_only(config), new, context)).kv_bytes
        num_bytes(
            f"{_shape(config)}: bytes of {new} new tokens, context {context}",
            config,
            new,
            context,
            4 * weights + kv,
            {},
        )


def _shape(config: ModelConfig) -> str:
    """What there is to count with, without the rest of a configuration."""
    return (
        f"{config.num_layers} layers of {layer_weights(config):,} weights, {config.num_heads} heads and "
        f"{config.num_kv_heads} KV heads of head_dim {config.head_dim}, a head of {head_weights(config):,} weights"
    )


def _number(what: str, got: object, expected: int, misled: Mapping[int, str]) -> None:
    if isinstance(got, bool) or not isinstance(got, Real):
        raise Wrong(f"{what} (a number)", got, expected)
    because = next((name for wrong, name in misled.items() if got == wrong), "")
    expect_close(what, float(got), expected, MISCONCEPTIONS.get(because, ""), relative=1e-12)


def _random_steps(seed: int) -> list[tuple[ModelConfig, int, int]]:
    generator = random.Random(seed)
    steps = []
    for _ in range(8):
        kv_heads, head_dim = generator.randint(1, 3), generator.choice([2, 4, 6])
        heads = kv_heads * generator.randint(1, 3)
        config = ModelConfig(
            vocab_size=generator.randint(5, 40),
            max_positions=64,
            num_layers=generator.randint(1, 3),
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=head_dim,
            hidden_size=generator.randint(3, 12),
            intermediate_size=generator.randint(3, 30),
        )
        # With one key torch multiplies by itself, and does not count it as a product.
        context = generator.randint(2, 20)
        steps.append((config, generator.choice([1, context]), context))
    return steps
