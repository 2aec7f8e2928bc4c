"""“The end of text is no text, so it does not belong to the answer.”"""

from collections.abc import Sequence

from lessons.lesson01_token_loop.solution import *  # noqa: F403
from lessons.lesson01_token_loop.solution import NextLogits


def generate(next_logits: NextLogits, prompt: Sequence[int], max_tokens: int, eos: int | None) -> list[int]:
    answer: list[int] = []
    while len(answer) < max_tokens:
        token_id = int(next_logits([*prompt, *answer])[-1].argmax())
        if token_id == eos:
            break
        answer.append(token_id)
    return answer
