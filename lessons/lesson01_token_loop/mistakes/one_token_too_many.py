"""“Enough is when there are more than max_tokens.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    answer: list[int] = []
    while True:
        answer.append(int(next_logits([*prompt, *answer])[-1].argmax()))
        if answer[-1] == eos or len(answer) > max_tokens:
            return answer
