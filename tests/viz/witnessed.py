"""A run written down by a second witness: straight from the books, without the recorder.

So a test can say that a picture shows what the books say, whatever the recorder does.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from minipaged.trace import Moment, StepRecord
from tests.house import House
from tests.recorded import header_of, moment_of

DESCRIPTION = "a simulated model"


class Witnessed:
    """A `House` with its moments kept; a `Trace`."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.header = header_of(house.engine, DESCRIPTION)
        self.moments: list[Moment] = []
        house.engine.listeners.append(self._write_down)

    def __len__(self) -> int:
        return len(self.moments)

    def moment(self, index: int) -> Moment:
        return self.moments[index]

    def _write_down(self, record: StepRecord) -> None:
        self.moments.append(moment_of(self.house.engine, record, DESCRIPTION))


def random_run(
    seed: int,
    num_requests: int = 20,
    num_blocks: int = 24,
    host_blocks: int = 8,
    begin: Callable[[Witnessed], None] = lambda run: None,
) -> Witnessed:
    """A house with too little memory, and requests that share beginnings, part and are cancelled.

    Args:
        begin: called before the first step.
    """
    numbers = random.Random(seed)
    house = House(num_blocks, 4, budget=numbers.choice((8, 16, 32)), max_sequences=6, host_blocks=host_blocks)
    run = Witnessed(house)
    begin(run)
    stems = [[100 * i + j for j in range(numbers.randrange(4, 20))] for i in range(3)]
    for _ in range(num_requests):
        stem = numbers.choice(stems)
        prompt = stem[: numbers.randrange(1, len(stem) + 1)] + [
            numbers.randrange(3) for _ in range(numbers.randrange(9))
        ]
        house.add(prompt, numbers.randrange(1, 24), n=numbers.choice((1, 1, 1, 2, 3)))
        for _ in range(numbers.randrange(4)):
            if house.engine.has_work:
                house.step()
        if numbers.random() < 0.05:
            house.engine.cancel(house.requests[-1])
    house.run()
    return run
