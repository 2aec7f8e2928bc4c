"""Checks of lesson 5's exercise. Small cases first, which can be followed by hand; then a long random story."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from lessons.runner.checks import Wrong, expect, expect_error, expect_whole

MISCONCEPTIONS = {
    "taken_but_not_counted": "Leaving the free list is only half of being taken. The count must say 1, or whoever "
    "shares the block next makes it 1 instead of 2, and the first of the two to go frees it.",
    "next_number": "A request's blocks need not be neighbours, nor numbered higher than the last. A pool that only "
    "ever hands out the next number is used up while it is empty: blocks that came back must go out again.",
    "freed_while_shared": "A block that goes back while another table still holds it will be given to somebody else, "
    "who writes over what the other still reads. Only the last holder's leaving frees it.",
    "freed_twice": "Giving back a block that nobody holds puts it into the free list a second time. Two requests will "
    "then get the same block and overwrite each other. It must be refused.",
    "logical_for_physical": "The i-th block of the text is not the i-th block of the pool: where it lies is what the "
    "table is for. Look the logical block up before you multiply.",
    "offset_without_block_size": "A block number is no slot number. Block 5 begins block_size * 5 slots into the pool.",
    "unguarded_position": "A position outside the table must be refused. Python takes blocks[-1] for the last block, "
    "so -1 silently becomes a slot of the text's end.",
    "opened_too_early": "A full block opens no new one. 8 tokens fill two blocks of 4 exactly; it is the ninth that "
    "needs a third. Whether the token in question is counted already is the usual trap here.",
    "counted_from_nothing": "What is missing is what is needed less what the table has. Without the second half the "
    "request takes all of its blocks again with every token.",
}


def task_1(exercise: ModuleType) -> None:
    """allocate"""
    pool = exercise.BlockPool(3)
    taken = pool.allocate()
    if not isinstance(taken, int) or taken not in (0, 1, 2):
        raise Wrong("allocate() on a fresh pool of 3 gives a block's number", taken, "0, 1 or 2")
    expect(f"block {taken} is taken; is it still in free_list", taken in pool.free_list, False)
    expect(f"block {taken} is taken; its count", pool.count(taken), 1, because=MISCONCEPTIONS["taken_but_not_counted"])
    others = [pool.allocate(), pool.allocate()]
    expect("three allocations from a pool of 3", sorted([taken, *others]), [0, 1, 2])
    expect_error("allocate() when nothing is free", IndexError, pool.allocate)

    # A block that came back, by a hand that is not the learner's, since `free` is the next task.
    returned = others[0]
    pool.counts[returned] = 0
    pool.free_list.append(returned)
    expect(
        f"all 3 blocks were taken, block {returned} came back; allocate() gives",
        _or_error(pool.allocate),
        returned,
        because=MISCONCEPTIONS["next_number"],
    )


def task_2(exercise: ModuleType) -> None:
    """free"""
    pool = _pool_with(exercise, free=[2], counts=[2, 1, 0])
    last = pool.free(0)
    because = MISCONCEPTIONS["freed_while_shared"]
    expect("block 0 has two holders, one frees it; is it in free_list", 0 in pool.free_list, False, because)
    expect("block 0 had two holders, one has freed it; its count", pool.count(0), 1, because)
    expect("free(0), with another holder left, returns", last, False)
    expect("block 1 has one holder, who frees it; free(1) returns", pool.free(1), True)
    expect("block 1 has no holder any more; free_list, sorted", sorted(pool.free_list), [1, 2])
    expect("block 1 has no holder any more; its count", pool.count(1), 0)

    because = MISCONCEPTIONS["freed_twice"]
    expect_error("free(1) once more, though nobody holds it", ValueError, lambda: pool.free(1), because)
    expect("after the refusal; free_list, sorted", sorted(pool.free_list), [1, 2], because)
    expect("after the refusal; counts", list(pool.counts), [1, 0, 0], because)
    _random_story(exercise)


def task_3(exercise: ModuleType) -> None:
    """slot, blocks_missing"""
    table = _table(exercise, 4, [7, 2, 5])
    shown = "block_size 4, blocks [7, 2, 5]: "
    expect_whole(f"{shown}slot(0)", table.slot(0), 28, _why_slot(table.slot(0), [7, 2, 5]))
    expect_whole(f"{shown}slot(9)", table.slot(9), 21, _why_slot(table.slot(9), [7, 2, 5]))
    expect_whole(f"{shown}slot(3), the last of a block", table.slot(3), 31)
    expect_whole(f"{shown}slot(11), the last of all", table.slot(11), 23)
    because = MISCONCEPTIONS["unguarded_position"]
    expect_error(f"{shown}slot(12)", IndexError, lambda: table.slot(12), because)
    expect_error(f"{shown}slot(-1)", IndexError, lambda: table.slot(-1), because)

    table = _table(exercise, 4, [])
    expect_whole("block_size 4, no blocks yet: blocks_missing(5)", table.blocks_missing(5), 2)
    expect(
        "block_size 4, no blocks yet: blocks_missing(8)",
        table.blocks_missing(8),
        2,
        because=MISCONCEPTIONS["opened_too_early"],
    )
    expect("block_size 4, no blocks yet: blocks_missing(0)", table.blocks_missing(0), 0)
    table = _table(exercise, 4, [7, 2])
    for num_tokens, missing in ((9, 1), (8, 0), (13, 2)):
        expect(
            f"block_size 4, blocks [7, 2]: blocks_missing({num_tokens})",
            table.blocks_missing(num_tokens),
            missing,
            because=MISCONCEPTIONS["counted_from_nothing"],
        )
    expect("block_size 4, blocks [7, 2]: blocks_missing(1), never below 0", table.blocks_missing(1), 0)

    generator = random.Random(5)
    for _ in range(200):
        block_size, length = generator.choice([1, 2, 3, 16]), generator.randint(1, 9)
        blocks = generator.sample(range(50), length)
        table = _table(exercise, block_size, blocks)
        slots = [block * block_size + offset for block in blocks for offset in range(block_size)]
        found = [table.slot(position) for position in range(length * block_size)]
        expect(f"block_size {block_size}, blocks {blocks}: all slots in order", found, slots)
        tokens = generator.randint(0, 200)
        enough = next(n for n in range(1000) if (length + n) * block_size >= tokens)
        shown = f"block_size {block_size}, {length} blocks: blocks_missing({tokens})"
        expect_whole(shown, table.blocks_missing(tokens), enough)


def _random_story(exercise: ModuleType) -> None:
    """A thousand allocations, sharings and frees against a plain dictionary of counts."""
    generator = random.Random(5)
    pool, counts = exercise.BlockPool(8), dict.fromkeys(range(8), 0)
    for _ in range(1000):
        held = [block for block, count in counts.items() if count]
        action = generator.choice(["allocate", "share", "free"])
        if action == "allocate" and len(held) < 8:
            block = pool.allocate()
            expect("a random story: allocate() gives a block that nobody holds", counts.get(block), 0)
            counts[block] = 1
        elif action == "share" and held:
            block = generator.choice(held)
            pool.hold(block)
            counts[block] += 1
        elif action == "free" and held:
            block = generator.choice(held)
            counts[block] -= 1
            expect(f"a random story: free({block}) was its last holder", pool.free(block), counts[block] == 0)
        expect("a random story: the counts", list(pool.counts), list(counts.values()))
        nobodys = [block for block, count in counts.items() if not count]
        expect("a random story: free_list, sorted", sorted(pool.free_list), nobodys)


def _pool_with(exercise: ModuleType, free: list[int], counts: list[int]) -> Any:
    """A pool in a given state, whatever `allocate` does."""
    pool = exercise.BlockPool(len(counts))
    pool.free_list[:] = free
    pool.counts[:] = counts
    return pool


def _table(exercise: ModuleType, block_size: int, blocks: list[int]) -> Any:
    table = exercise.BlockTable(block_size)
    table.blocks.extend(blocks)
    return table


def _why_slot(got: object, blocks: list[int]) -> str:
    """Which mistake gives this slot; both cases that are asked give different ones."""
    if got in (blocks[0], blocks[2] + 1):
        return MISCONCEPTIONS["offset_without_block_size"]
    return MISCONCEPTIONS["logical_for_physical"] if got in (0, 9) else ""


def _or_error(call: Any) -> object:
    try:
        return call()
    except NotImplementedError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
