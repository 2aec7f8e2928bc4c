"""Lesson 4: the allocators keep their books under any traffic, answer as the paged engine does, waste as is said."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from minipaged_kernels import reference

from lessons.lesson04_fragmentation import experiment, solution
from lessons.lesson04_fragmentation.__main__ import main
from lessons.lesson04_fragmentation.experiment import measure
from lessons.lesson04_fragmentation.figures import (
    BUDDY,
    GROWING,
    MAXIMUM,
    ORACLE,
    PAGED,
    WHOLE,
    Figures,
)
from lessons.lesson04_fragmentation.recorded_requests import (
    RecordedRequest,
    like_alpaca,
    like_sharegpt,
    made_requests,
    mean,
    read_requests,
)
from lessons.lesson04_fragmentation.service import Service, final_slots
from lessons.lesson04_fragmentation.slot_map import slot_map
from minipaged.engine import Engine
from minipaged.llm import LLM
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.contiguous import buddy as projects_own
from minipaged.memory.contiguous.buddy import Buddy, region_size
from minipaged.memory.contiguous.buddy_cache import BuddyCache
from minipaged.memory.contiguous.contiguous_cache import ContiguousCache, in_engine
from minipaged.memory.contiguous.growing_cache import GrowingCache
from minipaged.memory.contiguous.regions import Regions
from minipaged.memory.contiguous.reserving_cache import ReservingCache, whole_context
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.model.kv_cache import KVCache
from minipaged.model.sampler import Sampler
from minipaged.parts import Parts
from minipaged.plan import CopyBlock, Sampling
from minipaged.request import Request, Sequence
from minipaged.runner import TorchRunner
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.traffic import SHAREGPT
from minipaged.viz.theme import Theme
from tests.house import House, lone_sequence, manager
from tests.test_scheduler_machine import SchedulerMachine
from tests.tiny_models import tiny_gpt

SHARED = Path(os.environ.get("MINIPAGED_SHARED", Path(__file__).parents[2].parent / "shared"))
AZURE = SHARED / "traces" / "AzureLLMInferenceTrace_conv.csv"

# Regions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_slots", [1, 7, 64, 100])
def test_regions_do_what_a_search_through_all_slots_does(num_slots: int) -> None:
    random, regions = Random(num_slots), Regions(num_slots)
    owner: list[int | None] = [None] * num_slots  # the base of the region that each slot is in

    def first_run(n: int) -> int | None:
        return next((b for b in range(num_slots - n + 1) if all(o is None for o in owner[b : b + n])), None)

    for _ in range(600):
        taken = sorted(regions.taken)
        n = random.randint(1, max(1, num_slots // random.choice([1, 3, 8])))
        kind = random.choice(["allocate", "free", "resize"]) if taken else "allocate"
        if kind == "allocate":
            expected = first_run(n)
            assert regions.allocate(n) == expected
            if expected is not None:
                owner[expected : expected + n] = [expected] * n
        else:
            base = random.choice(taken)
            length, before = regions.taken[base], list(owner)
            owner = [None if o == base else o for o in owner]
            if kind == "free":
                regions.free(base)
            else:
                in_place = base + n <= num_slots and all(o is None for o in owner[base : base + n])
                expected = base if in_place else first_run(n)
                assert regions.resize(base, n) == expected
                if expected is None:
                    owner, n = before, length
                else:
                    owner[expected : expected + n] = [expected] * n
        regions.check()
        assert regions.num_free == owner.count(None)
        assert {o for o in owner if o is not None} == set(regions.taken)


@pytest.mark.parametrize("num_slots", [1, 12, 64, 100, 4096])
def test_the_buddy_keeps_its_books_and_merges_back_to_the_empty_pool(num_slots: int) -> None:
    random, buddy = Random(num_slots), Buddy(num_slots)
    empty = buddy.holes
    for _ in range(500):
        if buddy.taken and random.random() < 0.45:
            buddy.free(random.choice(sorted(buddy.taken)))
        else:
            n = random.choice([1, 2, 3, 7, 8, 100])
            largest, before = buddy.largest_hole, buddy.holes
            base = buddy.allocate(n)
            assert (base is None) == (largest < region_size(n))
            if base is None:
                assert buddy.holes == before, "a refusal changes nothing"
            else:
                assert buddy.taken[base] == buddy.granted(n)
        buddy.check()
    for base in list(buddy.taken):
        buddy.free(base)
    assert buddy.holes == empty


def test_the_answer_that_is_shown_is_the_projects_own() -> None:
    """It stands in both places, since a learner reads one and the house must not import the other."""
    shown = inspect.getsource(solution).split('"""', 2)[2]
    assert shown == inspect.getsource(projects_own).split('"""', 2)[2]


def test_books_that_do_not_hold_are_found() -> None:
    regions = Regions(10)
    regions.allocate(4)
    regions.holes = [(4, 3), (7, 3)]
    with pytest.raises(AssertionError, match="two holes touch"):
        regions.check()
    buddy = Buddy(16)
    buddy.allocate(4)
    buddy.free_at[4].clear()
    with pytest.raises(AssertionError, match="slot 4: it is in two regions, or in none"):
        buddy.check()
    cache = ReservingCache(100)
    cache.admit(lone_sequence([1, 2, 3]), 3)
    cache._live_slots += 1
    with pytest.raises(AssertionError, match="live_slots is 4"):
        cache.check()


@pytest.mark.parametrize("space", [Regions, Buddy])
def test_bad_sizes_and_unknown_regions_are_refused(space: Any) -> None:
    with pytest.raises(ValueError, match="num_slots is 0; it must be at least 1"):
        space(0)
    with pytest.raises(ValueError, match="no region starts at slot 3"):
        space(8).free(3)


# Caches under the scheduler ------------------------------------------------------------------------------------------

CACHES: dict[str, Any] = {
    "prompt + maximum": ReservingCache,
    "whole context": lambda n, **options: ReservingCache(n, whole_context(40), **options),
    "buddy": BuddyCache,
    "growing": GrowingCache,
}


class ContiguousMachine(SchedulerMachine):
    """Arrivals, forks, cancellations and faults over each cache, freed slots poisoned, books checked at every step."""

    @initialize(
        num_slots=st.integers(8, 200),
        cache=st.sampled_from(sorted(CACHES)),
        budget=st.integers(1, 40),
        max_sequences=st.integers(1, 6),
        max_chunk_tokens=st.none() | st.integers(1, 12),
        watermark_blocks=st.sampled_from([0, 0, 3]),
    )
    def build(  # type: ignore[override]
        self,
        num_slots: int,
        cache: str,
        budget: int,
        max_sequences: int,
        max_chunk_tokens: int | None,
        watermark_blocks: int,
    ) -> None:
        memory: ContiguousCache = CACHES[cache](num_slots, poison_freed=True)
        self.house = House(
            num_slots,
            1,
            memory=memory,
            budget=budget,
            max_sequences=min(max_sequences, budget),
            max_chunk_tokens=max_chunk_tokens,
            watermark_blocks=watermark_blocks,
        )
        self.slots = memory.max_sequence_slots


TestContiguousCaches = ContiguousMachine.TestCase


@pytest.mark.parametrize("name", CACHES)
def test_answers_are_those_of_the_paged_memory(name: str) -> None:
    """On a real model: greedy and sampled, alone and in threes, in a pool where somebody always waits."""
    prompts = [[(7 * i + 3 * j) % 50 for j in range(length)] for i, length in enumerate((5, 17, 1, 9, 12, 3))]
    params = [
        SamplingParams(max_tokens=12, temperature=0.0 if i % 2 else 0.9, n=3 if i == 1 else 1, seed=i)
        for i in range(len(prompts))
    ]

    def answers(memory: Any, num_blocks: int, block_size: int) -> list[list[int]]:
        model = tiny_gpt()
        cache = KVCache(model.config, num_blocks, block_size)
        cache.blocks.fill_(float("nan"))  # a read of what was never written shows
        runner = TorchRunner(model, cache, Sampler(), reference)
        engine = Engine(Scheduler(memory, max_batch_tokens=16, max_sequences=8), runner, model.config)
        engine.listeners.append(lambda record: memory.check())
        requests = [engine.add_request(p, s) for p, s in zip(prompts, params, strict=True)]
        while engine.has_work:
            engine.step()
        assert not any(request.error for request in requests)
        return [sequence.output_token_ids for request in requests for sequence in request.sequences]

    cache = CACHES[name](70, poison_freed=True)
    assert answers(cache, 70, 1) == answers(manager(40, 4), 40, 4)
    assert cache.held_slots == cache.live_slots == 0
    if isinstance(cache, GrowingCache):
        assert cache.num_moves > 0


def test_the_whole_engine_runs_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIPAGED_DEBUG", "1")
    prompts = ["Spring", "The river in summer"]
    params = SamplingParams(max_tokens=8, temperature=0)
    expected = [output.outputs[0].token_ids for output in LLM("tiny-gpt", num_blocks=64).generate(prompts, params)]
    for make in CACHES.values():
        llm = LLM("tiny-gpt", parts=Parts(memory=in_engine(make)), block_size=1, num_blocks=128)
        assert [output.outputs[0].token_ids for output in llm.generate(prompts, params)] == expected
    with pytest.raises(ValueError, match="block_size is 16, host_blocks 0; a contiguous cache takes block_size=1"):
        LLM("tiny-gpt", parts=Parts(memory=in_engine(ReservingCache)), num_blocks=64)
    with pytest.raises(TypeError, match="num_tables"):
        in_engine(ReservingCache)(BlockPool(64), PrefixTree(1), num_tables=3)


def test_a_region_that_moves_is_copied_in_an_order_that_loses_nothing() -> None:
    """Down over its own slots, the first one first; up to another hole and back again, too."""
    cache = GrowingCache(10)
    a, b = lone_sequence([1, 2, 3], id=0), lone_sequence([4, 5, 6, 7], id=1)
    assert cache.admit(a, 3)
    assert cache.admit(b, 4)
    cache.end_step()
    a.num_computed, b.num_computed = 3, 4
    cache.release(a)  # b is in 3 … 6
    b.tokens += [0] * 5
    assert cache.grow(b, 5), "9 of 10 slots, in place: there are only 7 behind it"
    assert cache.table(b) == tuple(range(9))
    assert cache.take_operations() == [CopyBlock(3 + i, i) for i in range(4)]
    cache.check()
    assert (cache.num_moves, cache.num_copied) == (1, 4)
    assert not cache.grow(b, 7)
    assert cache.table(b) == tuple(range(9))
    assert cache.take_operations() == []


def test_what_a_failed_step_left_undone_goes_in_front_of_the_next_steps_operations() -> None:
    """A scheduler may leave a running sequence out of a step; its tokens are still to be copied."""
    cache = ReservingCache(300)
    parent, child, other = _asking(3, 8, id=0), _asking(3, 8, id=1), _asking(2, 2, id=2)
    cache.admit(parent, 3)
    cache.end_step()
    cache.fork(parent, child)
    operations = cache.take_operations()
    assert operations == [CopyBlock(i, 10 + i) for i in range(3)]
    cache.admit(other, 2)
    cache.abort_step(operations[1:])
    cache.fork(other, lone_sequence([1, 1], id=3))
    assert cache.take_operations() == [*operations[1:], CopyBlock(20, 23), CopyBlock(21, 24)]


def test_one_contiguous_request_that_is_cut_in_two_by_a_move_reads_back_whole() -> None:
    """The simulated cache holds the tokens themselves: whoever copies in the wrong order answers wrongly."""
    house = House(24, 1, memory=GrowingCache(24, poison_freed=True), budget=64)
    house.add(4, max_tokens=2)
    house.add(6, max_tokens=14)
    house.add(2, max_tokens=3)
    house.run()
    house.assert_answers_right()
    house.assert_empty()
    assert house.memory.num_moves > 0


@pytest.mark.parametrize("name", CACHES)
def test_answers_part_ways_by_copies_and_one_that_finds_no_hole_is_computed_again(name: str) -> None:
    memory = CACHES[name](45, poison_freed=True)
    house = House(45, 1, memory=memory)
    request = house.add(12, max_tokens=9, n=4)
    house.run()
    house.assert_answers_right()
    house.assert_empty()
    assert sum(sequence.num_preemptions for sequence in request.sequences) > 0
    copies = [op for plan in house.runner.plans for op in plan.memory_ops if isinstance(op, CopyBlock)]
    assert len(copies) >= 12 or name in ("whole context", "buddy"), (
        "where there is a hole, a fork is a copy of the prompt"
    )


def test_a_fork_inherits_the_region_of_a_parent_that_ends() -> None:
    memory = ReservingCache(20)
    parent, first, second = (lone_sequence([1] * 8, id=i) for i in range(3))
    assert memory.admit(parent, 8), "it wants 8 + 128 - 1 slots and gets what the pool has"
    table = memory.table(parent)
    assert len(table) == 20
    memory.end_step()
    for child in (first, second):
        memory.fork(parent, child)
        child.num_computed = 8
    assert memory.table(first) == memory.table(second) == ()
    assert not memory.grow(first, 1)
    memory.release(parent)
    assert (memory.table(first), memory.live_slots) == (table, 8)
    assert memory.grow(first, 1)
    assert not memory.grow(second, 1)
    memory.check()
    memory.release(first)
    assert memory.table(second) == table
    memory.release(second)
    assert memory.held_slots == 0
    memory.check()


@pytest.mark.parametrize("make", CACHES.values(), ids=CACHES)
def test_a_refusal_changes_nothing(make: Any) -> None:
    cache = make(64)
    first, second = _asking(20, 5, id=0), _asking(50, 5, id=1)
    assert cache.admit(first, 20, reserve=64) is None, "nothing would be left, and all should be"
    assert (cache.held_slots, cache.space.num_free) == (0, 64)
    assert cache.admit(first, 20, reserve=24)
    held = cache.held_slots
    assert cache.admit(second, 50) is None
    assert cache.held_slots == held
    assert cache.table(second) == ()
    cache.check()


def _asking(prompt: int, max_tokens: int, id: int) -> Sequence:
    """A sequence outside any engine, whose user asks for so many tokens at most."""
    request = Request(id, (1,) * prompt, SamplingParams(max_tokens=max_tokens), seed=0)
    request.sequences.append(Sequence(id, request, 0, [1] * prompt, Sampling(1.0, None, 1.0, 0, 0, 0)))
    return request.sequences[0]


def test_misuse_is_refused() -> None:
    cache = ReservingCache(500)
    sequence, other = lone_sequence([1, 2], id=0), lone_sequence([1, 2], id=1)
    for verb in (lambda: cache.grow(sequence, 1), lambda: cache.release(sequence), lambda: cache.fork(sequence, other)):
        with pytest.raises(ValueError, match="sequence 0 holds no region; admit it first"):
            verb()
    cache.admit(sequence, 2)
    with pytest.raises(ValueError, match=r"ReservingCache\.admit: sequence 0 is admitted already; release it first"):
        cache.admit(sequence, 2)
    with pytest.raises(ValueError, match=r"ReservingCache\.fork: sequence 0 is admitted already"):
        cache.fork(sequence, sequence)


def test_what_could_never_fit_is_refused_when_it_is_added() -> None:
    house = House(100, 1, memory=BuddyCache(100))
    with pytest.raises(ValueError, match="needs 70 token slots .* above the 64 token slots"):
        house.add(50, max_tokens=21)
    house.add(50, max_tokens=15)
    house.run()
    house.assert_answers_right()


# Recorded requests ---------------------------------------------------------------------------------------------------


def test_made_requests_have_the_means_that_they_should_and_are_always_the_same() -> None:
    for make, prompt, answer in ((like_sharegpt, 161, 338), (like_alpaca, 19, 58)):
        requests = make(100)
        assert requests == make(100)
        assert mean(requests, lambda r: r.prompt) == pytest.approx(prompt, rel=0.01)
        assert mean(requests, lambda r: r.answer) == pytest.approx(answer, rel=0.01)
        assert all(1 <= r.prompt <= 1024 and 1 <= r.answer <= 1024 for r in requests)
    assert made_requests(50, SHAREGPT, seed=1) != made_requests(50, SHAREGPT, seed=2)


def test_lengths_are_read_from_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head, second = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:17:03"
    path.write_text(
        head + "".join(f"{second},{lengths}\n" for lengths in ("374,44", "3000,10", "2047,1", "2048,1", "8,2"))
    )
    assert read_requests(path, 2, 2048) == [RecordedRequest(374, 44), RecordedRequest(2047, 1)]
    assert read_requests(path, 9, 2048)[2:] == [RecordedRequest(8, 2)]
    path.write_text("prompt,answer\n1,2\n")
    with pytest.raises(ValueError, match="ContextTokens and GeneratedTokens"):
        read_requests(path, 2, 2048)
    path.write_text(f"{head}{second},3000,2\n")
    with pytest.raises(ValueError, match="no request whose prompt and answer fit in 2048"):
        read_requests(path, 2, 2048)
    with pytest.raises(ValueError, match="cannot be read"):
        read_requests(tmp_path / "none.csv", 2, 2048)


@pytest.mark.skipif(not AZURE.is_file(), reason="the traces are not here; MINIPAGED_SHARED says where")
def test_a_recorded_trace_tells_the_same_story() -> None:
    rows = {row.memory: row for row in experiment.compare(read_requests(AZURE, 30, experiment.CONTEXT), 8192)}
    assert rows[PAGED].utilisation > 0.95
    assert rows[WHOLE].utilisation < rows[BUDDY].utilisation < rows[MAXIMUM].utilisation < rows[ORACLE].utilisation


# What the lesson says ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures() -> Figures:
    return measure()


def test_505_slots_are_lost_to_one_short_answer(figures: Figures) -> None:
    lost = {row.memory: (row.held, row.filled, row.lost) for row in figures.lost}
    assert lost[MAXIMUM] == (20 + 512 - 1, 20 + 7 - 1, 505)
    assert lost[WHOLE] == (2048, 26, 2022)
    assert lost[BUDDY] == (1024, 26, 998)
    assert lost[ORACLE] == lost[GROWING] == (26, 26, 0)
    assert lost[PAGED] == (32, 26, 6), "less than one block"


def test_the_hole_that_the_next_request_does_not_fit(figures: Figures) -> None:
    hole = figures.hole
    # Regions of prompt + 511 slots lie one behind the other; those of A, C and E are holes now, and 170 at the end.
    assert (hole.needed, hole.free, hole.largest_hole) == (300 + 511, 3 * 531 + 170, 531)
    assert hole.step == 8, "the short answers took 7"
    assert hole.waited_steps == 400, "until B, the first of the others, has drawn its 400 tokens and left a hole"
    assert hole.waited_steps_paged == 0


def test_each_slot_is_one_of_the_kinds(figures: Figures) -> None:
    for row in figures.shares:
        assert row.live + row.reserved + row.internal + row.external + row.short == pytest.approx(1)
        assert row.utilisation == pytest.approx(row.live / (row.live + row.reserved + row.internal))


def test_what_each_memory_wastes(figures: Figures) -> None:
    whole, maximum, buddy, oracle, growing, paged = figures.shares
    assert whole.utilisation < buddy.utilisation < maximum.utilisation < oracle.utilisation < paged.utilisation
    assert paged.utilisation > 0.96
    assert growing.utilisation == 1, "it holds just its tokens"
    assert growing.external > 0.05, "and pays in holes"
    assert growing.copied > 50 * growing.steps, "and in copies"
    assert paged.external == 0, "a free block fits everybody"
    assert whole.external == 0, "regions of one length leave holes of that length"
    assert maximum.external > 0
    assert oracle.internal == growing.internal == 0, "whoever knows the length wastes nothing for good"
    assert oracle.reserved > 0.1, "and still holds slots long before they are filled"
    assert whole.mean_running < maximum.mean_running < paged.mean_running
    assert whole.steps > maximum.steps > paged.steps
    for row in (whole, maximum, buddy, oracle):
        assert (row.preemptions, row.copied) == (0, 0), "who has reserved never moves and never gives way"


def test_both_accounts_of_static_reservation_are_right(figures: Figures) -> None:
    for traffic in ("long_answers", "short_answers"):
        by_factor = [getattr(row, traffic) for row in figures.sweep]
        assert by_factor == sorted(by_factor, reverse=True), "the further the maximum from the truth, the emptier"
    long = {row.factor: row.long_answers for row in figures.sweep}
    assert 0.55 < long[1.0] < 0.75
    assert 0.15 < long[None] < 0.30
    assert figures.sweep_paged[0] > 0.96, "it does not look at the maximum"


def test_the_papers_systems_come_out_in_the_papers_order(figures: Figures) -> None:
    ours = [row.ours for row in figures.paper]
    assert ours == sorted(ours)
    assert ours[-1] > 90
    assert all(row.ours == pytest.approx(row.paper, abs=12) for row in figures.paper[:3])


def test_the_memory_serves_everybody_with_the_answer_that_was_recorded() -> None:
    requests = like_alpaca(30)
    for memory in experiment.memories(1024, final_slots(requests, 64)).values():
        service = Service(memory, requests, 64)
        sequences = {}
        while service.scheduler.has_work:
            service.open_step()
            service.counts()
            sequences |= {s.id: s for s in service.scheduler.running}
            service.close_step()
        assert [len(sequences[i].draws) for i in range(30)] == [min(request.answer, 64) for request in requests]
        assert memory.held_slots == 0


def test_the_map_shows_each_slot_once_and_says_who_was_refused() -> None:
    service, _ = experiment.until_no_hole_fits()
    plain = slot_map("pool", service, Theme(unicode=False, colors="none")).plain.splitlines()
    cells = "".join(line[5:] for line in plain[1:-1])
    assert len(cells) == 4096 // 16
    assert plain[0] == "pool  3 run, 821 slots live of 2333 held"
    assert plain[-1].strip() == "refused G: needs 811 slots, 1763 free, the largest hole 531"
    assert set(cells) == set(".BbDdFf")
    assert cells.startswith("." * 33 + "B" * 19 + "b"), "531 slots free, then B's 307 tokens, then what it may need"
    assert plain == slot_map("pool", service, Theme(unicode=False, colors="none")).plain.splitlines()


def test_the_lesson_plays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    svg, trace = tmp_path / "picture.svg", tmp_path / "trace.csv"
    rows = "".join(f"2023-11-16 18:17:{i:02},{100 + i},{20 + i}\n" for i in range(30))
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    options = ["--small", "--trace", str(trace), "--predict", "505", "44 %", "--svg", str(svg)]
    assert main(options) == 0
    said = capsys.readouterr().out
    assert "yours 505   ours 505   measured 505 slots" in said
    assert "exactly." in said
    assert svg.read_text().startswith("<svg")
    assert main(["--small", "--trace", str(tmp_path / "none.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_learners_buddy_takes_the_place_of_ours() -> None:
    made = []

    class Mine(Buddy):
        def __init__(self, num_slots: int) -> None:
            super().__init__(num_slots)
            made.append(num_slots)

    rows = experiment.short_answer(Mine)
    assert made == [experiment.DRAWN_POOL_SLOTS]
    assert rows == experiment.short_answer()
