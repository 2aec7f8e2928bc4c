"""An LLM whose model says what it is told to, for tests of what becomes of its tokens."""

from __future__ import annotations

from typing import Any

from minipaged import LLM, SamplingParams
from minipaged.plan import Chunk, Draw, StepPlan, StepResult


class Script:
    """Draws a fixed text's tokens, whatever it is asked."""

    def __init__(self, llm: LLM, prompt: str, answer: str) -> None:
        assert llm.tokenizer is not None
        self.token_ids = [*llm.tokenizer.encode(answer), 0]
        self.prompt_length = len(llm.tokenizer.encode(prompt))

    def run(self, plan: StepPlan) -> StepResult:
        return StepResult([self._draws(chunk) for chunk in plan.chunks])

    def _draws(self, chunk: Chunk) -> tuple[Draw, ...]:
        place = chunk.start + len(chunk.token_ids) - self.prompt_length
        return tuple(Draw(self.token_ids[min(place, len(self.token_ids) - 1)], 0.0) for _ in range(chunk.draws))


def scripted(llm: LLM, answer: str, prompt: str = "the cat", **params: Any) -> tuple[str, list[str], str | None]:
    """The answer's text, its pieces and its finish reason, when the model says `answer`."""
    llm.engine.runner = Script(llm, prompt, answer)
    params = {"max_tokens": 80, **params}
    text = llm.generate(prompt, SamplingParams(**params))[0].outputs[0].text
    pieces = list(llm.stream(prompt, SamplingParams(**params)))
    assert "".join(piece.text for piece in pieces) == text, "the pieces join to the text"
    assert [piece.finish_reason is None for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    return text, [piece.text for piece in pieces], pieces[-1].finish_reason
