"""ScriptedRunner: the runner's door without a model. It ends each answer where the recorded one ended.

It draws one token again and again, and the end-of-text token when the recorded length is reached. So the scheduler
learns of an answer's end just as it does from a model: when it comes, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping

from minipaged.plan import CopyBlock, Draw, StepPlan, StepResult

END_OF_TEXT = 0
WORD = 1
VOCABULARY = 2


class ScriptedRunner:
    """Runs no arithmetic.

    Args:
        last_contexts: sequence id -> tokens in its context when it draws its last token: prompt + answer - 1.
    """

    def __init__(self, last_contexts: Mapping[int, int]) -> None:
        self.last_contexts = last_contexts
        self.num_copied = 0  # slots or blocks, by `CopyBlock`

    def run(self, plan: StepPlan) -> StepResult:
        """Draws for each chunk what the record says."""
        self.num_copied += sum(type(operation) is CopyBlock for operation in plan.memory_ops)
        plan.num_executed_ops = len(plan.memory_ops)
        draws: list[tuple[Draw, ...]] = []
        for chunk in plan.chunks:
            context = chunk.start + len(chunk.token_ids)
            token_id = END_OF_TEXT if context >= self.last_contexts[chunk.sequence] else WORD
            draws.append((Draw(token_id, 0.0),) * chunk.draws)
        return StepResult(draws)
