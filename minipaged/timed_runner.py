"""TimedRunner: another runner, whose steps take as long as a cost model says, on a virtual clock.

It knows plans and seconds. What the tokens are, the runner inside knows.
"""

from __future__ import annotations

from typing import Protocol

from minipaged.cost_model import CostModel, StepCost
from minipaged.plan import StepPlan, StepResult
from minipaged.virtual_clock import VirtualClock


class Inner(Protocol):
    """A runner."""

    def run(self, plan: StepPlan) -> StepResult:
        """Carry the plan out."""
        ...


class TimedRunner:
    """Lets the clock go on by what each plan costs.

    Args:
        runner: carries the plans out; what time that takes in truth does not matter.
        cost_model: says how long it would take.
        clock: goes on by so much.
        block_size: token slots in a block, for the bytes of a memory operation.
    """

    def __init__(self, runner: Inner, cost_model: CostModel, clock: VirtualClock, block_size: int) -> None:
        self.runner = runner
        self.cost_model = cost_model
        self.clock = clock
        self.block_size = block_size
        self.last_cost: StepCost | None = None  # of the step that was run last

    def run(self, plan: StepPlan) -> StepResult:
        """Carry the plan out, and let the time pass."""
        result = self.runner.run(plan)
        self.last_cost = cost = self.cost_model.cost(plan, self.block_size)
        self.clock.advance(cost.seconds)
        return result
