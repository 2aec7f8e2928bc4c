"""“The best token is where the logits are highest.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    answer: list[int] = []
    while len(answer) < max_tokens and (not answer or answer[-1] != eos):
        answer.append(int(next_logits([*prompt, *answer]).argmax()))
    return answer
