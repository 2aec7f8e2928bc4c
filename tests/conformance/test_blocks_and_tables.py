"""Conformance 1 to 5: blocks and tables, the bookkeeping alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from minipaged.memory.kv_manager import KVManager
from minipaged.plan import CopyBlock
from minipaged.request import Sequence
from tests.house import lone_sequence, manager


def admit_whole(memory: KVManager, sequence: Sequence) -> None:
    admission = memory.admit(sequence, want=len(sequence.tokens))
    assert admission is not None
    memory.end_step()
    sequence.num_computed = admission.num_cached + admission.num_new


def append_one(memory: KVManager, sequence: Sequence) -> None:
    sequence.tokens.append(0)
    assert memory.grow(sequence, 1)
    memory.end_step()
    sequence.num_computed += 1


@pytest.mark.parametrize("block_size", [1, 8, 16])
@pytest.mark.parametrize("prompt", [1, 7, 8, 9])
@pytest.mark.parametrize("appended", [1, 8, 129])
def test_01_appending_takes_the_blocks_that_its_tokens_open(block_size: int, prompt: int, appended: int) -> None:
    memory = manager(200, block_size)
    sequence = lone_sequence([0] * prompt)
    admit_whole(memory, sequence)
    before = memory.pool.num_free
    for _ in range(appended):
        append_one(memory, sequence)
        memory.check()
    assert before - memory.pool.num_free == -(-(prompt + appended) // block_size) - -(-prompt // block_size)


@pytest.mark.parametrize("length", [1, 8, 16, 129])
@pytest.mark.parametrize("writer", ["child", "parent"])
def test_02_a_fork_takes_no_block_and_the_first_writer_copies(length: int, writer: str) -> None:
    memory = manager(64, 8)
    parent, child = lone_sequence(list(range(length)), id=0), lone_sequence(list(range(length)), id=1)
    admit_whole(memory, parent)
    before, held = memory.table(parent), memory.pool.num_held
    memory.fork(parent, child)
    child.num_computed = parent.num_computed
    assert memory.pool.num_held == held
    assert memory.table(child) == before
    memory.take_operations()

    one, other = (child, parent) if writer == "child" else (parent, child)
    append_one(memory, one)
    copies = [op for op in memory.take_operations() if isinstance(op, CopyBlock)]
    if length % 8:
        assert copies == [CopyBlock(before[-1], memory.table(one)[-1])]
        assert memory.table(one)[:-1] == before[:-1]
    else:
        assert copies == []
        assert memory.table(one)[:-1] == before
    assert memory.table(other) == before
    memory.check()
    append_one(memory, other)
    assert not any(isinstance(op, CopyBlock) for op in memory.take_operations()), "it is alone with its block now"
    memory.check()
    memory.release(one)
    memory.release(other)
    assert memory.pool.num_available == 64
    memory.check()


def test_03_misuse_is_refused_by_name_and_changes_nothing() -> None:
    memory = manager(4, 4)
    sequence, stranger = lone_sequence([0] * 5, id=7), lone_sequence([0], id=8)
    admit_whole(memory, sequence)
    with pytest.raises(ValueError, match="grow: sequence 8 holds no blocks"):
        memory.grow(stranger, 1)
    with pytest.raises(ValueError, match="admit: sequence 7 is admitted already"):
        memory.admit(sequence, 1)
    assert memory.pool.num_free == 2
    assert len(memory.table(sequence)) == 2
    memory.release(sequence)
    with pytest.raises(ValueError, match="release: sequence 7 holds no blocks"):
        memory.release(sequence)
    with pytest.raises(ValueError, match="fork: sequence 7 holds no blocks"):
        memory.fork(sequence, stranger)
    assert (memory.pool.num_free, memory.pool.num_evictable) == (3, 1)
    memory.check()
    assert memory.admit(stranger, 1)
    for refused in (lambda: memory.release(stranger), lambda: memory.fork(stranger, sequence)):
        with pytest.raises(ValueError, match="sequence 8 is in the open step"):
            refused()
    memory.end_step()
    memory.release(stranger)
    memory.check()


def test_04_slots_are_right_in_a_fragmented_pool() -> None:
    memory = manager(8, 4)
    singles = [lone_sequence([0], id=i) for i in range(8)]
    for single in singles:
        admit_whole(memory, single)
    for single in singles[::2]:
        memory.release(single)
    sequence = lone_sequence([0] * 4, id=100)
    admit_whole(memory, sequence)
    for _ in range(12):
        append_one(memory, sequence)
    table = memory.table(sequence)
    assert sorted(table) == [0, 2, 4, 6]
    assert all(abs(a - b) > 1 for a, b in pairwise(table)), "no two blocks are neighbours"
    slots = [memory.slot(sequence, position) for position in range(16)]
    assert slots == [table[p // 4] * 4 + p % 4 for p in range(16)]
    memory.check()


def test_05_a_full_last_block_opens_no_other() -> None:
    memory = manager(4, 4)
    sequence = lone_sequence([0] * 8)
    admit_whole(memory, sequence)
    assert len(memory.table(sequence)) == 2
    assert memory.slot(sequence, 7) == memory.table(sequence)[1] * 4 + 3
    append_one(memory, sequence)
    assert len(memory.table(sequence)) == 3
    assert memory.slot(sequence, 8) == memory.table(sequence)[2] * 4
