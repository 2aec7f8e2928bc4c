"""What changed, and why: every change is told, none is made up, and the sentences name the right cause."""

from __future__ import annotations

import re

import pytest

from minipaged.trace import Moment
from minipaged.viz.changes import BlockChange, block_changes, change_lines, event_line, marks, what_changed
from minipaged.viz.theme import Theme, name, sequence_named
from tests.house import House
from tests.viz.witnessed import Witnessed, random_run


def steps(run: Witnessed) -> list[tuple[Moment | None, Moment, tuple[BlockChange, ...]]]:
    found = []
    for index in range(len(run)):
        before, now = run.moment(index - 1) if index else None, run.moment(index)
        found.append((before, now, block_changes(before, now)))
    return found


def words(run: Witnessed, index: int) -> list[str]:
    before = run.moment(index - 1) if index else None
    now = run.moment(index)
    return what_changed(now, block_changes(before, now), Theme(), 100, 40).plain.splitlines()[1:]


@pytest.mark.parametrize("seed", range(6))
def test_every_block_that_changed_is_told_and_no_other(seed: int) -> None:
    num_changed = 0
    for before, now, changes in steps(random_run(seed, host_blocks=seed % 3 * 12)):
        told = {change.block for change in changes if change.tier == "device"}
        touched = {block for chunk in now.record.chunks for block in chunk.block_table}
        for block in now.device_blocks:
            old = before.device_blocks[block.block] if before else None
            if (block.holders, block.node is None) != ((old.holders, old.node is None) if old else ((), True)):
                # A block that its holder fills becomes a node's; that is no change of hands.
                if old is None or block.holders != old.holders or not block.holders:
                    assert block.block in told, (now.record.step, block)
                    num_changed += 1
            elif block.block in told:
                assert block.block in touched or old is None or old.node != block.node, (now.record.step, block)
        told_on_host = {change.block for change in changes if change.tier == "host"}
        for host, node in enumerate(now.host_blocks):
            if node != (before.host_blocks[host] if before else None):
                assert host in told_on_host
    assert num_changed > 100


@pytest.mark.parametrize("seed", range(6))
def test_they_are_as_many_as_the_memory_counts(seed: int) -> None:
    """Evictions and swaps, by `MemoryStats`, which counts them where they are decided."""
    names = ("evictions", "swaps_out", "swaps_in")
    last = dict.fromkeys(names, 0)
    for _, now, changes in steps(random_run(seed, host_blocks=12)):
        device = [change for change in changes if change.tier == "device"]
        found = {
            "evictions": sum(change.kind in ("swapped out", "evicted", "dropped") for change in device),
            "swaps_out": sum(change.kind == "swapped out" for change in device),
            "swaps_in": sum(change.kind == "swapped in" and change.tier == "host" for change in changes),
        }
        assert found == {name: now.counts[name] - last[name] for name in names}, now.record.step
        last = {name: now.counts[name] for name in names}
    assert last["swaps_in"] and last["swaps_out"]


@pytest.mark.parametrize("seed", range(6))
def test_sentences_say_what_the_tables_say(seed: int) -> None:
    num_taken = num_joined = num_left = 0
    for _, now, changes in steps(random_run(seed)):
        size = now.header.block_size
        tables = {chunk.sequence: chunk.block_table for chunk in now.record.chunks}
        after = {state.sequence: state.blocks for state in now.running}
        for change in changes:
            if taken := re.match(r"taken by (\w+) for", change.cause):
                sequence = sequence_named(taken[1])
                assert sequence is not None and change.tokens is not None
                assert tables[sequence][change.tokens[0] // size] == change.block
                chunk = next(chunk for chunk in now.record.chunks if chunk.sequence == sequence)
                assert chunk.start < change.tokens[1], "it computes some of the block's tokens"
                assert change.tokens[0] % size == 0 < change.tokens[1] - change.tokens[0] <= size
                num_taken += 1
            elif joined := re.match(r"shared by (\w+)|found by (\w+)", change.cause):
                sequence = sequence_named(joined[1] or joined[2])
                assert sequence is not None
                assert change.block in tables.get(sequence, ()) or change.block in after[sequence]
                num_joined += 1
            elif left := re.match(r"released, (\w+) .*; (.*)", change.cause):
                sequence = sequence_named(left[1])
                assert sequence is not None
                assert change.block not in after.get(sequence, ())
                state = now.device_blocks[change.block]
                if state.holders:
                    assert left[2] in (f"{name(state.holders[0])} holds it", "others hold it")
                else:
                    assert left[2] == ("free" if state.node is None else "cached")
                num_left += 1
    assert num_taken and num_joined and num_left


def test_three_answers_part_and_copy_before_they_write() -> None:
    house = House(8, 4)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5, 6], 4, n=3)
    house.run()
    assert words(run, 0) == [
        "A admitted: 0 of 6 cached",
        "B forked from A",
        "C forked from A",
        "+ blocks 0 1: taken by A for tokens[0:6]",
        "& blocks 0 1: shared by B, forked from A",
        "& blocks 0 1: shared by C, forked from A",
    ]
    assert words(run, 1) == [  # C is the last on block 1, so it need not copy
        "» block 2: copied from 1, shared with B, C: A writes on it",
        "» block 3: copied from 1, shared with C: B writes on it",
        "- block 1: released, A writes on its copy; C holds it",
        "- block 1: released, B writes on its copy; C holds it",
    ]


def test_equal_beginnings_are_shared_in_place() -> None:
    house = House(8, 4)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5], 3)
    house.step()
    house.add([1, 2, 3, 4, 6], 1)
    house.run()
    house.add([1, 2, 3, 4, 7], 1)
    house.run()
    assert "& block 0: shared by B with A" in words(run, 1)
    assert "- block 0: released, B ends; A holds it" in words(run, 1)
    assert "& block 0: found by C" in words(run, len(run) - 1)


def test_a_block_is_evicted_swapped_out_and_found_again() -> None:
    house = House(3, 4, host_blocks=2)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5], 1)
    house.run()
    house.add([9] * 10, 1)
    house.run()
    house.add([1, 2, 3, 4, 6], 1)
    house.run()
    assert words(run, 0)[-2:] == ["- block 0: released, A ends; cached", "- block 1: released, A ends; free"]
    assert "↑ block 0: evicted for B, swapped out to host 0" in words(run, 1)
    third = words(run, 2)
    assert "C admitted: 4 of 5 cached" in third
    assert any(re.match(r"↓ block \d: swapped in from host 0 for C", line) for line in third), third


def test_without_a_host_what_is_evicted_is_lost() -> None:
    house = House(3, 4)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5], 1)
    house.run()
    house.add([9] * 12, 1)
    house.run()
    assert "x block 0: evicted for B, its content is lost" in words(run, 1)


def test_a_private_request_is_forgotten_when_it_ends() -> None:
    house = House(4, 4, share_prefixes=False)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5], 2)
    house.run()
    assert words(run, 1) == [
        "A ends: length",
        "x block 0: its content is forgotten",
        "- blocks 0 1: released, A ends; free",
    ]


def test_a_preemption_comes_first_and_names_who_needs_what() -> None:
    house = House(4, 2)
    run = Witnessed(house)
    house.add([1, 2, 3], 4)
    house.add([4, 5, 6], 4)
    house.run()
    index = next(i for i in range(len(run)) if any(e.kind == "preempt" for e in run.moment(i).record.events))
    first, *rest = words(run, index)
    assert first == "B preempted: A needs room for tokens[4:5]"
    assert any(line.startswith("- block") and "B preempted" in line for line in rest)


def test_a_step_that_fails_says_so() -> None:
    house = House(4, 4)
    run = Witnessed(house)
    house.runner.fail_in_steps = {1}
    house.add([1, 2, 3, 4, 5], 4)
    house.run()
    assert words(run, 1)[:2] == ["error: RuntimeError: the lights went out", "A ends: error"]


def test_equal_prompts_in_one_step_end_in_one_block() -> None:
    """Chunk by chunk, both compute the same block; the second gives its own back when the step ends."""
    house = House(8, 4, budget=6, max_chunk_tokens=3)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5, 6, 7], 2)
    house.add([1, 2, 3, 4, 5, 6, 7], 2)
    house.run()
    told = [line for index in range(len(run)) for line in words(run, index)]
    assert "& block 0: shared by B, which computed the same tokens elsewhere" in told, told
    assert "- block 1: released, B holds the same tokens elsewhere; free" in told


def test_lines_are_grouped_and_the_rarest_is_marked() -> None:
    changes = [
        BlockChange("device", 4, "new", "taken by A for", tokens=(0, 4)),
        BlockChange("device", 5, "new", "taken by A for", tokens=(4, 8)),
        BlockChange("device", 6, "new", "taken by A for", tokens=(8, 10)),
        BlockChange("device", 9, "new", "taken by A for", tokens=(12, 13)),
        BlockChange("device", 4, "evicted", "evicted for A; host {} has a copy", 3),
        BlockChange("host", 3, "dropped", "dropped to make room, its content is lost"),
    ]
    assert change_lines(changes) == [
        ("new", "blocks 4-6: taken by A for tokens[0:10]"),
        ("new", "block 9: taken by A for tokens[12:13]"),
        ("evicted", "block 4: evicted for A; host 3 has a copy"),
        ("dropped", "host 3: dropped to make room, its content is lost"),
    ]
    assert marks(changes, "device") == {4: "evicted", 5: "new", 6: "new", 9: "new"}
    assert marks(changes, "host") == {3: "dropped"}


def test_what_does_not_fit_is_counted() -> None:
    run = random_run(1)
    index = max(range(1, len(run)), key=lambda i: len(words(run, i)))
    now = run.moment(index)
    changes = block_changes(run.moment(index - 1), now)
    short = what_changed(now, changes, Theme(), 60, 4).plain.splitlines()
    assert len(short) == 4
    assert short[3] == f"and {len(words(run, index)) - 2} more"
    assert len(what_changed(now, changes, Theme(), 60, 2)) == 2
    told = words(run, index)
    whole = what_changed(now, changes, Theme(), 100, len(told) + 1).plain.splitlines()
    assert whole[-1] == told[-1], "what fits is not summed up"
    assert event_line(now.record.events[0]) in what_changed(now, changes, Theme(), 100, 40).plain
