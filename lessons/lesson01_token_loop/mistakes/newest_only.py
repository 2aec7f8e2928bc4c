"""“After the prompt the model has read everything but the newest token.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    answer: list[int] = []
    tokens = list(prompt)
    while len(answer) < max_tokens and (not answer or answer[-1] != eos):
        answer.append(int(next_logits(tokens)[-1].argmax()))
        tokens = answer[-1:]
    return answer
