"""Conformance 6 to 13d: what is shared, what is copied, what is given up, and that no content is ever wrong."""

from __future__ import annotations

import pytest

from minipaged.memory.kv_manager import KVManager
from minipaged.plan import CopyBlock, SwapOut
from tests.house import House, lone_sequence, manager, unrelated


def counts(memory: KVManager, table: tuple[int, ...]) -> list[int]:
    return [memory.pool.count(block) for block in table]


def test_06_share_three_blocks_and_lose_them_to_a_long_prompt() -> None:
    memory = manager(10, 16)
    a = lone_sequence(list(range(55)), id=0)
    b = lone_sequence([*range(48), 900, 901, 902, 903, 904], id=1)
    other = lone_sequence([500 + i for i in range(160)], id=2)
    assert memory.admit(a, 1000)
    memory.end_step()
    assert len(memory.table(a)) == 4
    admission = memory.admit(b, 1000)
    assert admission is not None and (admission.num_from_device, admission.num_new) == (48, 5)
    memory.end_step()
    assert memory.table(b)[:3] == memory.table(a)[:3]
    assert counts(memory, memory.table(b)) == [2, 2, 2, 1]
    assert memory.pool.num_free == 5
    memory.release(a)
    memory.release(b)
    memory.check()
    assert (memory.pool.num_evictable, memory.pool.num_free) == (3, 7)
    assert memory.admit(other, 1000)
    memory.end_step()
    assert memory.pool.num_available == 0
    memory.release(other)
    again = memory.admit(a, 1000)
    assert again is not None and again.num_cached == 0
    memory.end_step()
    memory.check()


@pytest.mark.parametrize("held", [True, False])
def test_07_a_refusal_changes_nothing(held: bool) -> None:
    memory = manager(11, 4)
    a = lone_sequence(unrelated(0, 24), id=0)
    filler = lone_sequence(unrelated(1, 5), id=1)
    b = lone_sequence(unrelated(0, 24) + unrelated(2, 24 if held else 17), id=2)
    assert memory.admit(a, 1000)
    memory.end_step()
    if not held:
        memory.release(a)
        assert memory.admit(filler, 1000)  # leaves 3 free and 6 evictable, all of which b wants to share
        memory.end_step()
    before = (
        [memory.pool.count(block) for block in range(11)],
        memory.pool.free_blocks,
        memory.pool.eviction_order,
        memory.tree.roots,
        len(memory.tree),
    )
    assert memory.admit(b, 1000) is None
    stranger = lone_sequence(unrelated(5, 100), id=9)
    stranger.request.cache_salt = "a tenant of its own"
    assert memory.admit(stranger, 1000) is None
    after = (
        [memory.pool.count(block) for block in range(11)],
        memory.pool.free_blocks,
        memory.pool.eviction_order,
        memory.tree.roots,
        len(memory.tree),
    )
    assert after == before
    memory.check()


def test_08_the_least_recently_released_goes_first_leaf_before_parent() -> None:
    memory = manager(5, 4)
    a, b = lone_sequence(unrelated(0, 8), id=0), lone_sequence(unrelated(1, 12), id=1)
    for sequence in (a, b):
        assert memory.admit(sequence, 1000)
        memory.end_step()
    table_a, table_b = memory.table(a), memory.table(b)
    memory.release(a)
    memory.release(b)
    assert memory.pool.eviction_order == (*reversed(table_a), *reversed(table_b))
    c = lone_sequence(unrelated(2, 9), id=2)
    assert memory.admit(c, 1000)
    memory.end_step()
    assert memory.table(c) == (table_a[1], table_a[0], table_b[2])
    memory.check()


def test_09_the_same_prompt_of_two_blocks_twice() -> None:
    house = House(20, 4)
    first = house.add(unrelated(0, 8), max_tokens=3)
    house.step()
    second = house.add(unrelated(0, 8), max_tokens=3)
    assert house.step()[1] == 1
    assert [type(op) for op in house.runner.plans[-1].memory_ops] == [CopyBlock]
    one, two = house.memory.table(first.sequences[0]), house.memory.table(second.sequences[0])
    assert one[:2] == two[:2]
    assert counts(house.memory, one[:2]) == [2, 2]
    house.run()
    house.assert_answers_right()
    house.assert_empty()


def test_09_in_a_pool_of_exactly_two_blocks_nothing_is_copied() -> None:
    house = House(2, 4)
    house.add(unrelated(0, 8))
    house.run()
    house.add(unrelated(0, 8))
    assert house.step() == {1: 1}
    assert not any(isinstance(op, CopyBlock) for op in house.runner.plans[-1].memory_ops)
    house.assert_answers_right()
    house.assert_empty()


@pytest.mark.parametrize(("extra", "computed"), [(1, {0: 17, 1: 1, 2: 1}), (0, {0: 16, 1: 4, 2: 4})])
@pytest.mark.parametrize("fails", [False, True])
def test_10_three_equal_prompts_in_one_step(extra: int, computed: dict[int, int], fails: bool) -> None:
    house = House(20, 4)
    if fails:
        house.runner.fail_in_steps.add(0)
    requests = [house.add(unrelated(0, 16 + extra), max_tokens=4) for _ in range(3)]
    assert house.step() == computed
    if fails:
        assert [request.sequences[0].finish_reason for request in requests] == ["error"] * 3
        assert len(house.memory.tree) == 0
        assert house.memory.pool.num_free == 20
        requests = [house.add(unrelated(0, 16 + extra), max_tokens=4) for _ in range(3)]
        assert list(house.step().values()) == list(computed.values())
    house.run()
    assert all(len(request.sequences[0].draws) == 4 for request in requests)
    house.assert_answers_right(*requests)
    house.assert_empty()


@pytest.mark.parametrize("how", ["waiting", "failed"])
def test_11_what_was_never_computed_is_never_hit(how: str) -> None:
    house = House(20, 4)
    request = house.add(unrelated(0, 12), max_tokens=2)
    if how == "waiting":
        house.engine.cancel(request)
    else:
        house.runner.fail_in_steps.add(0)
        house.step()
    again = house.add(unrelated(0, 12), max_tokens=2)
    assert house.step()[again.sequences[0].id] == 12
    house.run()
    house.assert_answers_right(again)


def test_12_salts_keep_tenants_apart() -> None:
    house = House(40, 4)
    prompt = unrelated(0, 13)
    house.add(prompt, cache_salt="a")
    house.run()
    house.add(prompt, cache_salt="b")
    assert house.step() == {1: 13}
    house.add(prompt)
    assert house.step() == {2: 13}
    house.add(prompt, cache_salt="a")
    assert house.step() == {3: 1}
    house.assert_answers_right()


@pytest.mark.parametrize("change", [{0: 256}, {5: 256}, {5: 31, 6: -1}, {4: 512, 5: -256}, {8: 31, 9: -1}])
def test_12_only_equal_tokens_are_shared(change: dict[int, int]) -> None:
    house = House(40, 4)
    prompt = [600 + i for i in range(13)]
    near = [(token + change.get(i, 0)) % 1000 for i, token in enumerate(prompt)]
    house.add(prompt)
    house.run()
    house.add(near)
    assert house.step() == {1: 13 - min(change)}, "they share their common first tokens, and no more"
    house.assert_answers_right()


def test_13_sharing_is_to_the_token() -> None:
    house = House(40, 8)
    house.add([1, 2, 3, 4, 5, 6, 7, 8] * 2 + [9])
    house.run()
    house.add([1, 2, 3, 4, 5, 6, 7, 8] + [1, 2, 3, 70, 80] + [9] * 10)
    assert house.step() == {1: 12}
    assert [type(op) for op in house.runner.plans[-1].memory_ops if isinstance(op, CopyBlock)] == [CopyBlock]
    house.assert_answers_right()


def test_13a_the_same_content_in_two_blocks() -> None:
    memory = manager(20, 4)
    a = lone_sequence(unrelated(0, 8), id=0)
    b = lone_sequence(unrelated(0, 16), id=1)
    assert memory.admit(b, 2)  # before there is anything to share
    memory.end_step()
    b.num_computed = 2
    assert memory.admit(a, 1000)
    assert memory.grow(b, 4)  # fills a block whose node a has just inserted
    memory.check()
    memory.end_step()
    memory.check()
    a.num_computed, b.num_computed = 8, 6
    assert memory.table(a)[0] == memory.table(b)[0]
    memory.release(a)
    memory.check()
    for _ in range(5):
        assert memory.grow(b, 2)
        memory.end_step()
        memory.check()
        b.num_computed += 2
    memory.release(b)
    memory.check()
    assert memory.pool.num_available == 20


def test_13b_one_device_block_and_one_host_block() -> None:
    house = House(1, 2, host_blocks=1)
    for prompt in ([1, 1], [3, 3], [1, 1]):
        house.add(prompt)
        house.run()
    house.assert_answers_right()
    house.assert_empty()


def test_13b_no_node_without_its_parent() -> None:
    memory = manager(2, 1, host_blocks=2)
    for id, tokens in enumerate([[3], [1, 5], [3, 4], [6, 7], [1]]):
        sequence = lone_sequence(tokens, id=id)
        assert memory.admit(sequence, 1000)
        memory.check()
        memory.end_step()
        memory.release(sequence)
        memory.check()


def test_13b_a_clean_copy_is_never_written_twice() -> None:
    house = House(2, 2, host_blocks=8)
    a, b = [1, 2, 3], [5, 6, 7]
    for prompt in (a, b, a, b, a, b):
        house.add(prompt)
        house.run()
    swapped_out = [op for plan in house.runner.plans for op in plan.memory_ops if isinstance(op, SwapOut)]
    assert len(swapped_out) == 2, "each prompt has one full block, and it is written to the host once"
    assert house.memory.stats().swaps_in == 4
    house.assert_answers_right()


def test_13b_a_copy_whose_loss_loses_nothing_goes_first() -> None:
    house = House(4, 2, host_blocks=2)
    for prompt in ([1, 1, 9], [5, 6, 7, 8, 5, 6, 7], [1, 1, 9], [7, 7, 9]):
        house.add(prompt)
        house.run()
    # The host held [1, 1], which was on the device too, and the end of the long prompt, which was nowhere else.
    assert house.memory.stats().drops == 0
    house.add([5, 6, 7, 8, 5, 6, 7])
    assert house.step() == {4: 1}, "all of its three full blocks are still resident somewhere"
    house.assert_answers_right()
    house.assert_empty()


def test_equal_prompts_admitted_together_chunk_by_chunk_are_computed_once() -> None:
    house = House(40, 4, budget=24, max_chunk_tokens=8)
    for _ in range(2):
        house.add(unrelated(0, 40))
    computed = sum(sum(step.values()) for step in house.run())
    assert computed < 40 + 8, "what one has computed, the other shares at its next block boundary"
    house.assert_answers_right()
    house.assert_empty()


def churn(house: House) -> None:
    """Requests that make the memory swap, copy and recompute."""
    for number in (0, 1, 0, 2, 1, 0):
        house.add(unrelated(number, 9), max_tokens=4)


def test_13c_a_step_that_fails_after_k_of_its_memory_operations() -> None:
    # First a run that goes well, to see which step has how many operations.
    well = House(7, 2, host_blocks=3)
    churn(well)
    well.run()
    failures = [(p.step, k) for p in well.runner.plans for k in range(len(p.memory_ops) + 1) if p.memory_ops]
    assert len(failures) > 30
    for step, k in failures:
        house = House(7, 2, host_blocks=3)
        house.runner.fail_after_ops = {step: k}
        churn(house)
        house.run()
        failed = [request for request in house.requests if request.error]
        assert failed, "the step that was to fail did"
        churn(house)
        house.run()
        assert sum(request.error is not None for request in house.requests) == len(failed)
        house.assert_answers_right()
        house.assert_empty()


def test_13d_without_sharing_nothing_stays() -> None:
    house = House(6, 4, host_blocks=6, share_prefixes=False)
    for _ in range(30):
        house.add(unrelated(0, 18), max_tokens=3)
        house.run()
        assert len(house.memory.tree) == 0
        assert house.memory.tree.roots == ()
        assert house.memory.pool.num_free == 6
    stats = house.memory.stats()
    assert (stats.swaps_out, stats.swaps_in, stats.host_blocks, stats.tokens_from_device) == (0, 0, 0, 0)
    house.assert_answers_right()
