"""Checks of lesson 4's exercise: regions rounded to powers of two, split on the way down, merged on the way up."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any

from lessons.runner.checks import Wrong, expect, expect_error, expect_whole

MISCONCEPTIONS = {
    "rounds_past": "A power of two is its own region: 8 slots need a region of 8, not of 16. The next power of two is "
    "wanted only for what lies between two of them.",
    "keeps_it_whole": "A region that is larger than it must be is split until it is not. Given away whole, all of its "
    "rest is lost to everybody for as long as it is held.",
    "loses_the_half": "Splitting makes two regions, and the half that is not taken must be entered as free, or its "
    "slots belong to nobody for ever.",
    "takes_the_largest": "The smallest region that is enough is split, not the largest. A large region, once split, is "
    "no longer there for the request that needs it whole.",
    "needs_an_exact_fit": "That no region of just this size is free does not mean that there is no room: a larger one "
    "can be split.",
    "never_merges": "A region that comes back must merge with its buddy. Without that, memory only ever gets more "
    "finely divided, and at last no large region is left although every slot is free.",
    "merges_once": "Merging goes on: two buddies make a region that has a buddy of its own, which may be free, too.",
    "merges_with_the_right": "The buddy is not always the neighbour on the right. It is the other half of what a "
    "region was split from: left or right, whichever differs from it in one bit, `base ^ size`.",
    "forgets_the_size": "A free region that starts where the buddy starts need not be the buddy: that may have been "
    "split, and this is only its first piece. It must be free in its whole size.",
    "starts_at_its_own": "A merged pair starts at the lower of the two. When the upper half is the one that came back "
    "last, the pair starts at its buddy's slot.",
}  # fmt: skip


def task_1(exercise: ModuleType) -> None:
    """region_size and allocate."""
    for n, size in ((3, 4), (5, 8), (531, 1024)):
        expect_whole(f"region_size({n})", exercise.region_size(n), size)
    for n in (8, 512, 2, 1):
        expect(f"region_size({n})", exercise.region_size(n), n, MISCONCEPTIONS["rounds_past"])
    sizes = [2**k for k in range(12)]
    for n in range(1, 2049):
        expect_whole(f"region_size({n})", exercise.region_size(n), next(size for size in sizes if size >= n))

    buddy = exercise.Buddy(16)
    got = buddy.allocate(3)
    expect("in an empty pool of 16 slots, allocate(3)", got, 0, _if(got is None, "needs_an_exact_fit"))
    expect("of 16 slots, after allocate(3), the region that is taken", buddy.taken, {0: 4},
           _if(buddy.taken == {0: 16}, "keeps_it_whole"))  # fmt: skip
    expect_whole("of 16 slots, after allocate(3), the size in `taken`", buddy.taken[0], 4)
    expect("of 16 slots, after allocate(3), the free regions (first slot, size)", buddy.holes, [(4, 4), (8, 8)],
           _if(buddy.num_free < 12, "loses_the_half"))  # fmt: skip
    got = buddy.allocate(2)
    expect("then allocate(2)", got, 4, _if(got == 8, "takes_the_largest"))
    expect("then the free regions", buddy.holes, [(6, 2), (8, 8)])
    expect("then allocate(8), which fits just", buddy.allocate(8), 8)
    before = _books(buddy)
    expect("then allocate(4), with 2 slots free", buddy.allocate(4), None)
    expect("the books after that refusal", _books(buddy), before)
    expect("then allocate(1)", buddy.allocate(1), 6)
    expect("then the free regions", buddy.holes, [(7, 1)])

    buddy = exercise.Buddy(12)  # one region of 8, one of 4
    expect("in an empty pool of 12 slots (8 and 4), allocate(4)", buddy.allocate(4), 8)
    expect("then allocate(9), of which no pool of 12 has a region", buddy.allocate(9), None)
    expect("then allocate(5)", buddy.allocate(5), 0)
    expect("then allocate(1), with nothing free", buddy.allocate(1), None)

    buddy = exercise.Buddy(32)
    expect("of 32 slots, allocate(1) eight times", [buddy.allocate(1) for _ in range(8)], list(range(8)))
    _compare(exercise, seed=1, with_free=False)


def task_2(exercise: ModuleType) -> None:
    """free."""
    buddy = exercise.Buddy(16)
    expect_error("in an empty pool, free(0)", ValueError, lambda: buddy.free(0))
    for _ in range(2):
        buddy.allocate(8)
    expect("of 16 slots, two regions of 8 are taken; free(0) returns", buddy.free(0), None)
    expect("then the free regions (first slot, size)", buddy.holes, [(0, 8)])
    expect("then the taken ones", buddy.taken, {8: 8})
    _free(buddy, 8)
    # Not merged at all, or merged and entered where no region of 16 can start: different mistakes.
    why = "starts_at_its_own" if buddy.holes == [(8, 16)] else _why_unmerged(exercise)
    expect("of 16 slots, regions 0 and 8 of 8 each: the free regions after free(0), free(8)", buddy.holes, [(0, 16)],
           MISCONCEPTIONS[why])  # fmt: skip

    buddy = exercise.Buddy(16)
    buddy.allocate(8)  # 0
    buddy.allocate(2)  # 8
    buddy.allocate(2)  # 10
    _free(buddy, 8)
    _free(buddy, 0)
    expect("of 16 slots, 8 at 0, 2 at 8 and 2 at 10 are taken: the free regions after free(8), free(0)",
           buddy.holes, [(0, 8), (8, 2), (12, 4)], _if((0, 16) in buddy.holes, "forgets_the_size"))  # fmt: skip

    buddy = exercise.Buddy(16)
    for _ in range(4):
        buddy.allocate(4)
    _free(buddy, 8)
    _free(buddy, 4)
    expect("of 16 slots, four regions of 4: the free regions after free(8), free(4), neighbours and no buddies",
           buddy.holes, [(4, 4), (8, 4)], MISCONCEPTIONS["merges_with_the_right"])  # fmt: skip
    _free(buddy, 0)
    expect("then free(0), whose buddy is 4", buddy.holes, [(0, 8), (8, 4)])
    _free(buddy, 12)
    expect("then free(12), the last one", buddy.holes, [(0, 16)],
           _if(buddy.holes == [(0, 8), (8, 8)], "merges_once"))  # fmt: skip

    buddy = exercise.Buddy(12)
    buddy.allocate(8)
    buddy.allocate(4)
    _free(buddy, 8)
    _free(buddy, 0)
    expect("an empty pool of 12 slots again", buddy.holes, [(0, 8), (8, 4)])
    before = _books(buddy)
    expect_error("free(0), of which nothing is taken", ValueError, lambda: buddy.free(0))
    expect("the books after that error", _books(buddy), before)
    _compare(exercise, seed=2, with_free=True)


def _if(found: bool, mistake: str) -> str:
    """The misconception, when what came out is what it leads to."""
    return MISCONCEPTIONS[mistake] if found else ""


def _why_unmerged(exercise: ModuleType) -> str:
    """Which mistake leaves a pair apart: whoever merges when the lower one comes last looks to the right only."""
    buddy = exercise.Buddy(16)
    for _ in range(2):
        buddy.allocate(8)
    _free(buddy, 8)
    _free(buddy, 0)
    return "merges_with_the_right" if buddy.holes == [(0, 16)] else "never_merges"


def _compare(exercise: ModuleType, *, seed: int, with_free: bool) -> None:
    """Many operations in pools of several sizes, against a search through all slots; the books hold after each."""
    random = Random(seed)
    for num_slots in (1, 7, 64, 100, 256):
        buddy, done = exercise.Buddy(num_slots), []
        for _ in range(200):
            if with_free and buddy.taken and random.random() < 0.5:
                base = random.choice(sorted(buddy.taken))
                done.append(f"free({base})")
                buddy.free(base)
            else:
                n = random.choice((1, 1, 2, 3, 5, 8, 13, 30, 64))
                done.append(f"allocate({n})")
                expected = _first_place(buddy, exercise.region_size(n))
                got, what = buddy.allocate(n), f"of {num_slots} slots, after {_last(done)}, the region's first slot"
                expect(what, got, expected)
                if expected is not None:
                    expect_whole(what, got, expected)
            try:
                buddy.check()
            except AssertionError as error:
                what = f"of {num_slots} slots, the books after {_last(done)}"
                raise Wrong(what, str(error), "books that hold") from error


def _first_place(buddy: Any, size: int) -> int | None:
    """Where a region must be taken: in the smallest free one that is enough, the lowest of them."""
    enough = [(length, base) for base, length in buddy.holes if length >= size]
    return min(enough)[1] if enough else None


def _free(buddy: Any, base: int) -> None:
    """`free`, of a region that is taken: a complaint is wrong."""
    try:
        buddy.free(base)
    except (ValueError, KeyError) as error:
        what = f"free({base}), of a region that is taken"
        raise Wrong(what, f"{type(error).__name__}: {error}", "no error") from error


def _books(buddy: Any) -> tuple[list[tuple[int, int]], dict[int, int]]:
    return buddy.holes, dict(buddy.taken)


def _last(done: list[str]) -> str:
    shown = ", ".join(done[-8:])
    return f"… {shown}" if len(done) > 8 else shown
