"""Lesson 10: the figures that must hold on every machine, and what its tree promises."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from rich.console import Console

from lessons.lesson10_prefix_tree import LESSON, engine_part, solution
from lessons.lesson10_prefix_tree.__main__ import play
from lessons.lesson10_prefix_tree.experiment import (
    BLOCK_SIZE,
    EVICTED_BLOCKS,
    NUM_PREDICTED,
    SYSTEM_BLOCK_SIZE,
    common_beginning,
    longest_beginnings,
    predicted,
)
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.memory.prefix_tree import PrefixTree

TREES: dict[str, Callable[[int], PrefixTree]] = {
    "the engine's": PrefixTree,
    "the solution": solution.PrefixTree,
    "the engine's under the exercise's names": engine_part.PrefixTree,
}


def test_the_prediction_follows_the_three_rules() -> None:
    """Equal beginnings are found, to the token; blocks only whole; one token is left."""
    assert predicted([18, 18], [0, 12]) == (12, 3)
    assert predicted([15, 13], [0, 10]) == (10, 2)
    assert predicted([18, 18], [0, 18]) == (17, 4)
    assert predicted([9, 9], [0, 9]) == (8, 2)
    assert longest_beginnings([[1, 2, 3], [1, 2], [1, 2, 3, 4], [2]]) == [0, 2, 3, 0]
    assert common_beginning([1, 2, 3], [1, 9, 3]) == 1


@pytest.mark.parametrize("answers", [{}, {10: LESSON.module("solution")}])
def test_the_play_and_its_figures(answers: dict[int, object]) -> None:
    figures = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine(answers)))  # type: ignore[arg-type]
    assert figures.same_answers
    lengths = [asked.num_prompt for asked in figures.alone.asked[:NUM_PREDICTED]]
    assert (figures.tokens_not_computed, figures.blocks_saved) == predicted(lengths, [0, 12, 0, 10, 18]) == (39, 9)
    assert figures.alone.prompt_tokens_computed == sum(lengths) and figures.alone.blocks_saved == 0
    assert figures.alone.copies == 0 and figures.shared.copies == 2
    found = [(asked.num_in_place, asked.num_copied, asked.num_computed) for asked in figures.shared.asked]
    assert found == [(0, 0, 18), (12, 0, 6), (0, 0, 15), (8, 2, 3), (16, 1, 1), (0, 0, 18)]

    common, poet, rest = figures.stretches
    assert (common.start, common.end, common.texts[0]) == (0, 12, common.texts[1]) and all(common.same)
    assert poet.texts == ("李白", "杜甫") and not any(poet.same)
    assert rest.texts[0] == rest.texts[1] and rest.same == (True, False, False, False)

    eviction = figures.eviction
    assert eviction.evicted == EVICTED_BLOCKS == eviction.needed - eviction.free_before
    assert eviction.found_before == (17, 17) and eviction.found_after == (17, 12)

    alone, shared = figures.system_alone, figures.system_shared
    assert alone.computed == alone.prompt_tokens == shared.prompt_tokens
    # In one step a full block is shared while it is being computed; the rest of the beginning cannot be copied yet.
    assert alone.computed - shared.computed == shared.repeated
    assert shared.repeated >= (shared.num_questions - 1) * (shared.num_common // SYSTEM_BLOCK_SIZE) * SYSTEM_BLOCK_SIZE
    assert shared.answers == alone.answers and shared.most_blocks < alone.most_blocks / 2
    assert BLOCK_SIZE == 4


@pytest.mark.parametrize("make", TREES.values(), ids=TREES.keys())
def test_walks_of_all_trees_agree_with_a_list_of_texts(make: Callable[[int], PrefixTree]) -> None:
    generator = random.Random(2)
    for _ in range(30):
        size = generator.choice([1, 2, 4])
        tree = make(size)
        root = tree.hold_root(None)
        texts = [[generator.randrange(3) for _ in range(16)] for _ in range(6)]
        for text in texts[:5]:
            node = root
            for i in range(0, 16, size):
                tokens = tuple(text[i : i + size])
                node = tree.child(node, tokens) or tree.insert(node, tokens)
        tree.check()
        for text in texts:
            stop = generator.randint(0, 16)
            walk = tree.walk(root, text, 0, stop)
            found = len(walk.path) * size + walk.num_shared
            assert found == min(stop, max(common_beginning(text, other) for other in texts[:5]))
            assert (walk.source is None) == (walk.num_shared == 0)


@pytest.mark.parametrize("make", TREES.values(), ids=TREES.keys())
def test_a_tree_that_is_taken_out_leaf_by_leaf_is_gone(make: Callable[[int], PrefixTree]) -> None:
    tree = make(2)
    root = tree.hold_root("a salt")
    first = tree.insert(root, (1, 2))
    second = tree.insert(first, (3, 4))
    tree.release_root(root)
    assert tree.root("a salt") is root  # it has children
    with pytest.raises((AssertionError, ValueError)):
        tree.remove(first)
    tree.remove(second)
    tree.remove(first)
    assert tree.root("a salt") is None and len(tree) == 0
    tree.check()
