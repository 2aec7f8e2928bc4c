"""“max_tokens says how long the answer is.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    answer: list[int] = []
    for _ in range(max_tokens):
        answer.append(int(next_logits([*prompt, *answer])[-1].argmax()))
    return answer
