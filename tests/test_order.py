"""Orders whose values cannot be ranked are refused when a request comes, and not in the middle of a step."""

from __future__ import annotations

from typing import Any

import pytest

from minipaged.request import Sequence
from tests.house import House


@pytest.mark.parametrize("odd", [float("nan"), "x", None, 1j, {}])
def test_a_value_that_has_no_place_is_refused_and_nothing_changes(odd: Any) -> None:
    def order(sequence: Sequence) -> Any:
        return odd if sequence.num_prompt_tokens == 6 else 0

    house = House(20, 4, order=order)
    house.add(5, 4)
    house.step()  # it runs, and nobody waits
    with pytest.raises(ValueError, match="Scheduler: the order's value is .*; it must be something that can be ranked"):
        house.add(6, 4)
    assert house.scheduler.num_waiting == 0 and house.engine.num_requests == 1
    house.add(7, 4)
    house.run()
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize("values", [(1, 0.5, True, -2), ((1, "a"), (0, "b"), (1, "A"), (2, "")), ("b", "a", "c", "")])
def test_numbers_tuples_and_texts_can_be_ranked(values: tuple[Any, ...]) -> None:
    house = House(20, 4, max_sequences=1, order=lambda sequence: values[sequence.request.id])
    for prompt in range(4):
        house.add(5 + prompt, 2)
    ranked = sorted(range(4), key=lambda number: (values[number], number))
    assert [sequence.request.id for sequence in house.scheduler.waiting] == ranked
    house.run()
    house.assert_empty()
