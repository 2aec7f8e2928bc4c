"""Answers: at each step the text so far, in every size; nobody's text is another's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from minipaged.viz.answers import Answers, last_cells
from minipaged.viz.example import example_trace
from minipaged.viz.theme import Theme


def words(token_ids: Sequence[int]) -> str:
    return " ".join(f"w{token_id}" for token_id in token_ids)


def test_a_text_at_a_step_is_what_had_been_drawn_by_then() -> None:
    trace = example_trace()
    answers = Answers(trace, words)
    drawn: dict[int, list[int]] = {}
    for index in range(len(trace)):
        for sequence, token in trace.moment(index).record.drawn:
            drawn.setdefault(sequence, []).append(token)
        for sequence, tokens in drawn.items():
            assert answers.text(sequence, index) == words(tokens)
    assert len(drawn) == 8 and len({tuple(tokens) for tokens in drawn.values()}) > 5
    assert answers.text(0, 0) == words(trace.moment(0).record.drawn[0][1:]), "and the past is still there"


def test_half_a_character_is_not_shown() -> None:
    assert Answers(example_trace(), lambda token_ids: "黑洞\ufffd").text(0, 5) == "黑洞"


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize(("width", "height"), [(60, 3), (80, 6), (200, 20)])
def test_no_line_is_too_long_and_those_who_are_here_come_first(width: int, height: int, unicode: bool) -> None:
    trace = example_trace()
    answers = Answers(trace, lambda token_ids: "黑洞 a b\n" * len(token_ids))
    for index in range(len(trace)):
        moment = trace.moment(index)
        here = sorted(state.sequence for state in (*moment.running, *moment.waiting))
        lines = answers.picture(index, None, width, height, Theme(unicode, "none")).plain.splitlines()
        assert len(lines) <= height and all(cell_len(line) <= width for line in lines)
        shown = ["ABCDEFGH".index(line[0]) for line in lines[1:]]
        assert shown[: len(here)] == here[: height - 1]
        for followed in here:
            picture = answers.picture(index, followed, width, height, Theme(unicode, "none")).plain.splitlines()
            assert any(line.startswith("ABCDEFGH"[followed]) for line in picture[1:])


@pytest.mark.parametrize("cells", [1, 2, 5, 8])
@pytest.mark.parametrize("text", ["", "abc", "黑洞是宇宙中", "a黑b洞c是", "line\n\nline two"])
def test_the_end_of_a_text_fits(text: str, cells: int) -> None:
    assert cell_len(last_cells(text, cells)) <= cells
    assert last_cells("abc", 8) == "abc"
    assert text.endswith(last_cells(text, cells)[-1:])
