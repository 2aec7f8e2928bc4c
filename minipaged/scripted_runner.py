"""ScriptedRunner: the runner's door without a model. What it answers was written down before.

It computes nothing and looks at no cache, so it is as fast as the bookkeeping lets it be: for traffic by the hour, of
which only lengths are known, and for replaying a real run. The scheduler learns of an answer's end just as it does
from a model: when the end comes, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items

from minipaged.plan import Draw, StepPlan, StepResult

END_OF_TEXT = 0
WORD = 1  # every token of an answer of which only the length is known, but the last

Script = Callable[[int, int], int]  # (sequence, context in tokens) -> the token that comes next


class ScriptedRunner:
    """Runs no arithmetic.

    Args:
        script: of a sequence's id and the length of its context, the token that stands there. Of n answers that part,
            each is asked for by its own id: those of a request follow each other.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        # One for each token id: a new one for every token would cost more than all the rest.
        self._draws: dict[int, tuple[Draw]] = {}

    def run(self, plan: StepPlan) -> StepResult:
        """Draw for each chunk what the script says; the plan's memory operations count as done."""
        plan.num_executed_ops = len(plan.memory_ops)
        script, draws = self.script, self._draws
        result: list[tuple[Draw, ...]] = []
        for chunk in plan.chunks:
            context = chunk.start + len(chunk.token_ids)
            if chunk.draws == 1:
                token_id = script(chunk.sequence, context)
                result.append(draws.get(token_id) or self._draw(token_id))
            else:
                answers = range(chunk.sequence, chunk.sequence + chunk.draws)
                result.append(tuple(self._draw(script(sequence, context))[0] for sequence in answers))
        return StepResult(result)

    def _draw(self, token_id: int) -> tuple[Draw]:
        return self._draws.setdefault(token_id, (Draw(token_id, 0.0),))


def words_until(last_contexts: Mapping[int, int]) -> Script:
    """A script of lengths: `WORD` again and again, then `END_OF_TEXT`.

    Args:
        last_contexts: sequence -> tokens in its context when it draws its last token: prompt + answer - 1.
    """
    return lambda sequence, context: END_OF_TEXT if context >= last_contexts[sequence] else WORD


def recital(tokens: Mapping[int, Items[int]]) -> Script:
    """A script of tokens.

    Args:
        tokens: sequence -> all of its tokens, prompt and answer.
    """
    return lambda sequence, context: tokens[sequence][context]
