"""Lesson 11: the figures that must hold on every machine, and what its naive manager promises."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from lessons.lesson11_copy_on_write import LESSON, solution
from lessons.lesson11_copy_on_write.__main__ import NUM_PROMPT, play
from lessons.lesson11_copy_on_write.copying_manager import CopyingManager
from lessons.lesson11_copy_on_write.experiment import (
    BLOCK_SIZE,
    NUM_ANSWERS,
    NUM_TOKENS,
    blocks_used,
    over_traffic,
    write_without_copying,
)
from lessons.lesson11_copy_on_write.mistakes import never_copied
from lessons.runner.mine import Mine
from lessons.runner.stage import Stage
from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.plan import CopyBlock
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, simulated_answer

MANAGERS: dict[str, Callable[..., KVManager]] = {
    "the engine's": KVManager,
    "the solution": solution.KVManager,
    "the copying one": CopyingManager,
}
each_manager = pytest.mark.parametrize("make", MANAGERS.values(), ids=MANAGERS.keys())


def engine_on(make: Callable[..., KVManager], num_blocks: int, **options: Any) -> tuple[Engine, KVManager]:
    memory = make(BlockPool(num_blocks), PrefixTree(4), **options)
    model = ModelConfig(1000, 512, 1, 1, 1, 1, 1, 1, eos_token_ids=())
    return Engine(Scheduler(memory), SimulatedRunner(num_blocks, 4, 1000), model), memory


@each_manager
@pytest.mark.parametrize("share_prefixes", [True, False])
@pytest.mark.parametrize("num_blocks", [200, 26, 9])
def test_every_answer_is_the_one_given_alone(
    make: Callable[..., KVManager], num_blocks: int, share_prefixes: bool
) -> None:
    generator = random.Random(3)
    engine, memory = engine_on(make, num_blocks, share_prefixes=share_prefixes)
    requests, preempted = [], 0
    for _ in range(12):
        prompt = [generator.randrange(1000) for _ in range(generator.randint(1, 14))]
        params = SamplingParams(n=generator.randint(1, 5), max_tokens=generator.randint(1, 12), seed=7)
        requests.append(engine.add_request(prompt, params))
    while engine.has_work:
        engine.step()
        memory.check()
    for request in requests:
        for i, sequence in enumerate(request.sequences):
            prompt, most = request.prompt_token_ids, request.params.max_tokens
            assert sequence.output_token_ids == simulated_answer(prompt, most, 1000, 7, i)
            preempted += sequence.num_preemptions
    assert memory.pool.num_held == 0
    assert (preempted > 0) == (num_blocks < 200)
    if not share_prefixes:
        assert memory.pool.num_free == num_blocks


@pytest.mark.parametrize(
    ("make", "copies", "used"), [(KVManager, 3, 8), (solution.KVManager, 3, 8), (CopyingManager, 15, 20)]
)
def test_a_prompt_of_18_and_four_answers(make: Callable[..., KVManager], copies: int, used: int) -> None:
    """Five blocks after the prompt; after one token each, 8 of an unshared 20."""
    engine, memory = engine_on(make, 64)
    records: list[Any] = []
    engine.listeners.append(records.append)
    engine.add_request(list(range(18)), SamplingParams(n=4, max_tokens=5))
    engine.step()
    assert memory.pool.num_held == 5 and records[0].operations == ()
    engine.step()
    assert memory.pool.num_held == used
    assert sum(isinstance(operation, CopyBlock) for operation in records[1].operations) == copies


def test_the_copying_manager_refuses_without_changing_anything() -> None:
    engine, memory = engine_on(CopyingManager, 9)
    request = engine.add_request(list(range(18)), SamplingParams(n=2, max_tokens=2))
    engine.step()
    before = [memory.table(sequence) for sequence in request.sequences], memory.pool.num_free
    assert not memory.grow(request.sequences[0], 1)  # it owes five blocks, and four are free
    assert ([memory.table(sequence) for sequence in request.sequences], memory.pool.num_free) == before
    memory.check()


def test_the_formula_counts_full_blocks_of_the_prompt_once() -> None:
    assert blocks_used(18, 1, 4, 4) == (8, 20)
    assert blocks_used(18, 9, 4, 4) == (16, 28)
    assert blocks_used(16, 1, 4, 4) == (8, 20)
    assert blocks_used(3, 1, 6, 4) == (6, 6)


@pytest.mark.parametrize("answers", [{}, {11: LESSON.module("solution")}])
def test_the_play_and_its_figures(answers: dict[int, object]) -> None:
    figures = play(Stage(LESSON, Console(quiet=True), small=True, mine=Mine(answers)))  # type: ignore[arg-type]
    used, unshared = blocks_used(NUM_PROMPT, NUM_TOKENS - 1, NUM_ANSWERS, BLOCK_SIZE)
    shared, copying, tight = figures.shared, figures.copying, figures.copying_tight
    assert figures.same_answers and len(set(shared.answers)) > 1
    assert (shared.blocks_at_end, shared.entries_at_end) == (used, unshared)
    assert figures.blocks_saved == unshared - used == 12 == (NUM_ANSWERS - 1) * (NUM_PROMPT // BLOCK_SIZE)
    assert (shared.blocks_after_prompt, shared.blocks_after_write, shared.copies) == (5, 8, NUM_ANSWERS - 1)
    assert (copying.blocks_after_write, copying.blocks_at_end, copying.copies) == (20, unshared, 15)
    assert shared.num_preemptions == 0 and shared.steps == copying.steps == NUM_TOKENS
    assert tight.num_preemptions > 0 and tight.steps > NUM_TOKENS and tight.most_running < NUM_ANSWERS
    for saving in figures.savings:
        assert saving.used == saving.by_formula
        assert saving.copies == (saving.num_answers - 1 if saving.num_prompt % 16 else 0)
        assert saving.unshared - saving.used == (saving.num_answers - 1) * (saving.num_prompt // 16)


def test_who_never_copies_reads_what_the_other_wrote() -> None:
    overwritten = write_without_copying(never_copied.KVManager)
    assert overwritten.drawn[0] != overwritten.drawn[1]
    assert overwritten.read_back == (overwritten.drawn[1], overwritten.drawn[1])
    assert overwritten.answers[0] != overwritten.right[0]
    careful = write_without_copying(KVManager)
    assert careful.read_back == careful.drawn and careful.answers == careful.right


def test_longer_prompts_and_more_answers_save_more() -> None:
    alpaca, chats = over_traffic("Alpaca", 300), over_traffic("ShareGPT", 300)
    assert list(alpaca.shares) == sorted(alpaca.shares)
    assert all(more > less for more, less in zip(chats.shares, alpaca.shares, strict=True))
    two, four, six = alpaca.shares  # (n - 1) / n of what can be saved at most
    assert four == pytest.approx(two * 1.5) and six == pytest.approx(two * 5 / 3)
