"""“As long as there is no eos in the text, it goes on.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_tokens and eos not in tokens:
        tokens.append(int(next_logits(list(tokens))[-1].argmax()))
    return tokens[len(prompt) :]
