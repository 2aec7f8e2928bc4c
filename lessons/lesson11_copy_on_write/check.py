"""Checks of lesson 11's exercise. One fork by hand, then two answers that write, then whole engines without a model."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from lessons.lesson11_copy_on_write import solution
from lessons.runner.checks import expect
from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.block_table import BlockTable
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.plan import CopyBlock
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, StaleRead, simulated_answer

MISCONCEPTIONS = {
    "one_list_for_two": "A table of its own is a list of its own. If both sequences have the same list, the block that "
    "one of them takes for its next token turns up in the other's table.",
    "holders_not_counted": "Two tables name the block now, so its count must be 2. Left at 1, the first of the two to "
    "end gives the block away under the other's feet, and nobody sees that it must be copied.",
    "only_the_last_counted": "Every block of the parent is in the child's table, so every count rises. The full ones "
    "are never written on, but they are given back: with a count of 1, by the first that ends.",
    "copied_at_the_fork": "A fork takes no block and copies none. What both read can be the same block for as long as "
    "nobody writes on it, and full blocks are never written on.",
    "never_copied": "Sharing is for what is read. Both sequences have the same next slot, and the last to write wins: "
    "the other answer goes on from a token that it never drew.",
    "copied_though_alone": "A block that nobody else holds can be written on. Copying it with each token would move a "
    "whole block to write one slot.",
    "copied_though_full": "A full block is not written on, however many hold it: the next token opens a new block. "
    "Copying it would give up the sharing for nothing.",
    "looked_at_the_end": "`start` is the first position to be written. Whether the block is full after the write does "
    "not matter: the last free slot of a shared block belongs to somebody else, too.",
    "looked_at_any_block": "Only the last block is written on. Earlier ones may well be shared, with the other answers "
    "or with anybody whose prompt begins alike, and stay so.",
    "whole_table_copied": "One block is about to be written on, so one block is copied. All others are full; they stay "
    "shared for as long as the answers live.",
    "copied_backwards": "The new block gets the content, from the original. The other way round, what the new block "
    "held before goes over the tokens that all the others still read.",
    "original_kept": "The table does not name the original any more, so it holds it no longer. A count that is never "
    "lowered keeps the block for ever, and the last of the answers copies it though it is alone.",
    "copied_after_the_write": "Before means before: the copy must be in the log of the step that writes, ahead of its "
    "forward pass. Until it is made the new block lacks the prompt's tokens, and when it comes late it goes over what "
    "was written meanwhile.",
}
SIZE, VOCABULARY = 4, 1000


def task_1(exercise: ModuleType) -> None:
    """share"""
    manager, (parent,) = _manager(exercise.KVManager, 8, [3])
    child = BlockTable(SIZE)
    manager.share(parent, child)
    copied = _of("copied_at_the_fork") if child.blocks else ""  # an empty child is no copy, only nothing yet
    expect("a parent with blocks [0, 1, 2]; the child's blocks", list(child.blocks), [0, 1, 2], copied)
    counts = [manager.pool.count(block) for block in range(3)]
    name = "only_the_last_counted" if counts[-1] == 2 else "holders_not_counted"
    expect("the parent's blocks were shared once; their counts", counts, [2, 2, 2], _of(name))
    expect("blocks free, of 8", manager.pool.num_free, 5, _of("copied_at_the_fork"))
    child.blocks.append(7)
    expect("the child appends block 7; the parent's blocks", list(parent.blocks), [0, 1, 2], _of("one_list_for_two"))
    another = BlockTable(SIZE)
    manager.share(parent, another)
    counts = [manager.pool.count(block) for block in range(3)]
    expect("shared once more, with a third; the counts", counts, [3, 3, 3])
    expect("the log after two forks", manager.take_operations(), [])


def task_2(exercise: ModuleType) -> None:
    """must_copy"""

    def asked(counts: list[int], start: int, expected: bool, name: str) -> None:
        manager, (table,) = _manager(exercise.KVManager, 8, [len(counts)])
        for block, count in zip(table.blocks, counts, strict=True):
            for _ in range(count - 1):
                manager.pool.hold(block)
        what = f"block_size 4, blocks {table.blocks} with counts {counts}: must_copy(table, {start})"
        expect(what, manager.must_copy(table, start), expected, _of(name) if name else "")

    asked([1], 1, False, "copied_though_alone")  # before the engine counts on an answer
    ours = solution.KVManager
    probe: Any = type("KVManager", (exercise.KVManager,), {"share": ours.share, "copy_last": ours.copy_last})
    engine, runner, memory = _engine(probe, 16)
    request = engine.add_request([11, 12, 13, 14, 15, 16], SamplingParams(n=2, max_tokens=4, seed=3))
    engine.step()
    drawn = [sequence.tokens[6] for sequence in request.sequences]
    engine.step()
    shown = (
        f"a prompt of 6 tokens, two answers; A draws {drawn[0]} and B draws {drawn[1]}, and both write. At position 6 "
    )
    for i, sequence in enumerate(request.sequences):
        try:
            got: object = runner.context(memory.table(sequence), 7)[6]
        except StaleRead:
            got = "nothing"
        expect(f"{shown}{'AB'[i]} reads back", got, drawn[i], _of("never_copied"))

    asked([1, 1], 6, False, "copied_though_alone")
    asked([2, 2], 7, True, "looked_at_the_end")
    asked([2, 2], 8, False, "copied_though_full")
    asked([2, 1], 6, False, "looked_at_any_block")
    asked([1, 2], 5, True, "")
    asked([3], 1, True, "")
    asked([3], 4, False, "copied_though_full")


def task_3(exercise: ModuleType) -> None:
    """copy_last"""
    manager, (table,) = _manager(exercise.KVManager, 4, [2])
    for block in table.blocks:
        manager.pool.hold(block)
    manager.copy_last(table)
    shown = "blocks [0, 1] with counts [2, 2], of 4; after copy_last "
    expect(f"{shown}the table's blocks", list(table.blocks), [0, 2], _of("whole_table_copied"))
    log = manager.take_operations()
    name = "copied_after_the_write" if not log else "copied_backwards" if log == [CopyBlock(2, 1)] else ""
    expect(f"{shown}the step's log", log, [CopyBlock(1, 2)], _of(name) if name else "")
    counts = [manager.pool.count(block) for block in range(4)]
    expect(f"{shown}the counts of blocks 0 to 3", counts, [2, 1, 1, 0], _of("original_kept"))
    _whole_engine(exercise.KVManager)


def _whole_engine(make: Any) -> None:
    """Prompts with several answers each, side by side, without a model: every answer is the one given alone."""
    generator = random.Random(11)
    for num_blocks in (60, 24):  # roomy, and so small that answers are preempted
        engine, _, memory = _engine(make, num_blocks)
        requests = []
        for _ in range(8):
            prompt = [generator.randrange(VOCABULARY) for _ in range(generator.randint(1, 14))]
            params = SamplingParams(n=generator.randint(1, 5), max_tokens=generator.randint(1, 9), seed=7)
            requests.append(engine.add_request(prompt, params))
        while engine.has_work:
            engine.step()
            memory.check()
        for request in requests:
            prompt, most = list(request.prompt_token_ids), request.params.max_tokens
            for i, sequence in enumerate(request.sequences):
                right = simulated_answer(prompt, most, VOCABULARY, 7, i)
                what = f"an engine with {num_blocks} blocks, a prompt of {len(prompt)} tokens, answer {i}"
                expect(what, list(sequence.output_token_ids), right)
        expect(f"an engine with {num_blocks} blocks, all answers have ended; blocks held", memory.pool.num_held, 0)


def _manager(make: Any, num_blocks: int, lengths: list[int]) -> tuple[Any, list[BlockTable]]:
    """A manager, and tables of so many blocks each, taken from its pool."""
    manager = make(BlockPool(num_blocks), PrefixTree(SIZE))
    tables = []
    for length in lengths:
        table = BlockTable(SIZE)
        table.blocks.extend(manager.pool.allocate() for _ in range(length))
        tables.append(table)
    return manager, tables


def _engine(make: Any, num_blocks: int) -> tuple[Engine, SimulatedRunner, Any]:
    memory = make(BlockPool(num_blocks), PrefixTree(SIZE))
    runner = SimulatedRunner(num_blocks, SIZE, VOCABULARY)
    model = ModelConfig(VOCABULARY, 512, 1, 1, 1, 1, 1, 1, eos_token_ids=())
    return Engine(Scheduler(memory), runner, model), runner, memory


def _of(name: str) -> str:
    return MISCONCEPTIONS[name]
