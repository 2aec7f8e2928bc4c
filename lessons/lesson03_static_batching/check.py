"""Checks of lesson 3's exercise: rectangles small enough to be drawn, then a real batch against one at a time."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import torch

from lessons.runner.checks import Wrong, expect
from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT
from minipaged.model.static_batch import generate_static
from minipaged.sampling_params import SamplingParams

MISCONCEPTIONS = {
    "padded_in_front": "Padding in front moves every token of a short prompt to a later position, and the model reads "
    "position as meaning. Either the padding goes behind, or positions must be corrected and the front be hidden, "
    "too.",
    "drawn_from_padding": "A short prompt's last token is not in the last column: padding is. What the model says "
    "after padding is no answer to the prompt.",
    "padded_to_the_context": "It is enough to be as long as the longest prompt of this batch. Each further column is "
    "computed, and paid for, by every member.",
    "prompts_changed": "The lists belong to the caller, who still needs to know where each prompt ends. Make new ones.",
    "true_where_seen": "You mark what a token sees. `hide` asks the opposite: True where it must not look. (Both "
    "customs are found in libraries, so it pays to read which one is meant.)",
    "blind_to_itself": "A token does see itself: its own K and V are in the cache before it attends. In the first "
    "column there would otherwise be nothing to attend to at all.",
    "future_seen": "Hiding padding is not enough. Within a prompt, too, a token must not see those behind it: they "
    "were not there when the model learned to predict them.",
    "longest_for_all": "Each member stands in a column of its own. What is behind a short member's column is nothing "
    "of its text, however far the longest one has come.",
    "idle_forgotten": "Padding is only the beginning. A member that has ended stays in the batch and computes a row "
    "in every step until the slowest has ended.",
    "fed_back_twice": "The step that computes the prompts already draws the first token of each answer. So a longest "
    "answer of a tokens takes a steps in all, the first among them, and idle rows are counted against a, not a + 1.",
}


def task_1(exercise: ModuleType) -> None:
    """pad"""
    prompts = [[5, 6, 7], [8]]
    found = _pair("pad([[5, 6, 7], [8]])", exercise.pad(prompts))
    expect("the prompts that were handed in, afterwards", prompts, [[5, 6, 7], [8]], MISCONCEPTIONS["prompts_changed"])
    rows, last = [list(map(int, row)) for row in found[0]], list(map(int, found[1]))
    because = ""
    if all(len(row) > 3 for row in rows):
        because = MISCONCEPTIONS["padded_to_the_context"]
    elif rows[-1][-1:] == [8]:
        because = MISCONCEPTIONS["padded_in_front"]
    expect("pad([[5, 6, 7], [8]]): the token ids", rows, [[5, 6, 7], [8, 0, 0]], because)
    because = MISCONCEPTIONS["drawn_from_padding"] if last == [2, 2] else ""
    expect("pad([[5, 6, 7], [8]]): the columns of the last tokens", last, [2, 0], because)
    rows, last = exercise.pad([[4, 4]])
    expect("pad([[4, 4]]), a batch of one", ([list(row) for row in rows], list(last)), ([[4, 4]], [1]))

    generator = random.Random(3)
    for _ in range(50):
        lengths = [generator.randint(1, 9) for _ in range(generator.randint(1, 6))]
        prompts = [[generator.randint(1, 99) for _ in range(length)] for length in lengths]
        rows, last = exercise.pad([list(prompt) for prompt in prompts])
        expect(f"prompts of {lengths} tokens: lengths of the rows", {len(row) for row in rows}, {max(lengths)})
        kept = [list(row[:length]) for row, length in zip(rows, lengths, strict=True)]
        expect(f"prompts of {lengths} tokens: what stands before the padding", kept, prompts)
        expect(f"prompts of {lengths} tokens: columns of the last tokens", list(last), [n - 1 for n in lengths])


def task_2(exercise: ModuleType) -> None:
    """hide"""
    found = _mask(exercise, [[0, 1, 2]], 3)
    expected = [[[False, True, True], [False, False, True], [False, False, False]]]
    if found == [[[not hidden for hidden in row] for row in expected[0]]]:
        because = MISCONCEPTIONS["true_where_seen"]
    else:
        because = MISCONCEPTIONS["blind_to_itself"] if found[0][0][0] else MISCONCEPTIONS["future_seen"]
    expect("one prompt of 3 tokens, 3 columns (a row per token, True where it must not look)", found, expected, because)
    because = MISCONCEPTIONS["longest_for_all"]
    expected = [[[False, False, False, True]], [[False, True, True, True]]]
    expect(
        "two members, new tokens in columns 2 and 0, of 4 columns", _mask(exercise, [[2], [0]], 4), expected, because
    )
    _compare_with_one_at_a_time(exercise)


def task_3(exercise: ModuleType) -> None:
    """wasted_rows"""
    for prompts, answers in (([3, 1], [4, 2]), ([2, 2], [5, 5]), ([7], [9]), ([5, 9, 2, 8], [3, 10, 2, 6])):
        padded = sum(max(prompts) - length for length in prompts)
        idle = sum(max(answers) - length for length in answers)
        got = exercise.wasted_rows(list(prompts), list(answers))
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise Wrong(f"wasted_rows({prompts}, {answers}): a pair, padded and idle", got, (padded, idle))
        found, because = tuple(got), ""
        if found == (padded, 0):
            because = MISCONCEPTIONS["idle_forgotten"]
        elif found == (padded, idle + len(prompts)):
            because = MISCONCEPTIONS["fed_back_twice"]
        expect(f"wasted_rows({prompts}, {answers}): padded, idle", found, (padded, idle), because)


def _mask(exercise: ModuleType, positions: list[list[int]], columns: int) -> Any:
    """The mask as nested lists, if it is one at all."""
    mask = exercise.hide(torch.tensor(positions), columns)
    what = f"hide(positions {positions}, {columns} columns)"
    expect(f"{what}: what it returns", type(mask).__name__, "Tensor")
    shape = (len(positions), len(positions[0]), columns)
    expect(f"{what}: shape (batch, new, columns)", tuple(mask.shape), shape)
    expect(f"{what}: dtype", mask.dtype, torch.bool)
    return mask.tolist()


def _compare_with_one_at_a_time(exercise: ModuleType) -> None:
    """A small random model must not notice that it was put into a batch."""
    torch.manual_seed(3)
    model = GPT(ModelConfig(50, 64, 2, 2, 2, 8, 16, 32, tie_word_embeddings=False))
    prompts = [[5, 6, 7], [1], [9] * 12, [3, 1, 4, 1, 5]]
    params = [SamplingParams(temperature=0, max_tokens=n) for n in (9, 4, 6, 12)]
    alone = [answer.token_ids for answer in generate_static(model, prompts, params, 1).answers]
    together = generate_static(model, prompts, params, len(prompts), hide=exercise.hide).answers
    for number, (answer, expected) in enumerate(zip(together, alone, strict=True)):
        expect(f"four prompts to a random model in one batch: answer {number}", answer.token_ids, expected)


def _pair(what: str, found: Any) -> tuple[Any, Any]:
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise Wrong(what, found, "a pair: the token ids, and the columns of the last tokens")
    return found[0], found[1]
