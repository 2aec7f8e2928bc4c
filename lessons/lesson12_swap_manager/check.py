"""Checks of lesson 12's exercise. Small cases first, which can be followed by hand; then random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Set
from types import ModuleType
from typing import Any

from lessons.lesson12_swap_manager.given import SwapIn, SwapOut
from lessons.lesson12_swap_manager.small_engine import SmallEngine, is_right
from lessons.runner.checks import expect, expect_error, expect_whole
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.prefix_tree import Node, PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.parts import Parts

MISCONCEPTIONS = {
    "first_in_first_out": "That is first in, first out: a copy keeps the place at which it came, however often it is "
    "wanted. Being used must send it to the end of the queue, or the most useful copy goes as soon as it is old.",
    "stays_clean": "A copy is clean only while its content is on the device, too. Once it has left the device the copy "
    "is the only one, and a mark that stays would have it dropped first, as if nothing were lost.",
    "never_given_back": "A block whose copy is dropped must go back to the free list. Otherwise each drop shrinks the "
    "host pool by one block, until it has none.",
    "most_recent_victim": "The copy that was used last is the one most likely to be wanted next. The victim stands at "
    "the other end: what nobody has missed for longest.",
    "parent_before_child": "Any block is not as good as another. Blocks are evicted from the end of a text, so the "
    "queue has children before their parents; whoever picks by number drops a parent, and with it all that continues "
    "it, since a text is found only from its beginning.",
    "sole_before_clean": "While a clean copy is there, no sole one needs to go. The clean one's content is on the "
    "device, too, so dropping it loses nothing; dropping a sole one means computing it again.",
    "dropped_while_read": "A copy that is about to be read must stay. The room that is made for it would otherwise be "
    "made by dropping it.",
    "always_a_victim": "There need not be a victim: the pool may be empty, or every copy may be being read. That is an "
    "answer, None, and no error; the engine then drops what it wanted to save.",
    "written_twice": "A full block never changes, so a copy on the host is as good now as when it was written. Writing "
    "it once more moves the same bytes for nothing, and takes a second host block.",
    "copy_given_up": "Bringing a block back is no reason to throw its copy away. If the copy stays, the next eviction "
    "of that block is free.",
    "host_for_device": "SwapOut(device, host) reads the device block and writes the host block. The other way round it "
    "overwrites somebody's copy with whatever a stranger's block holds.",
    "hole_left": "What can be saved nowhere must be dropped from the tree. A node without any block is found by the "
    "next request with the same words, who then reads a place that does not exist.",
}


def task_1(exercise: ModuleType) -> None:
    """take, use, give_back"""
    books = _books(exercise, 3, order=[0])
    block = books.take()
    expect(f"3 host blocks; block 0 holds a copy. take() gave {block!r}; is that block 1 or 2", block in (1, 2), True)
    expect(f"block {block} was taken; is it still free", block in books.free, False)
    expect("order, least recently used first", list(books.order), [0, block])
    expect("is the new copy clean", books.is_clean(block), False)
    books.take()
    expect_error("take() when nothing is free", IndexError, books.take)

    because = MISCONCEPTIONS["first_in_first_out"]
    books = _books(exercise, 3, order=[0, 1, 2], clean={1})
    books.use(0, clean=True)
    expect("order was [0, 1, 2]; use(0, clean=True); order", list(books.order), [1, 2, 0], because)
    expect("clean was {1}; use(0, clean=True); clean", set(books.clean), {0, 1})
    books.use(1, clean=False)
    expect("order was [1, 2, 0]; use(1, clean=False); order", list(books.order), [2, 0, 1], because)
    expect("clean was {0, 1}; use(1, clean=False); clean", set(books.clean), {0}, MISCONCEPTIONS["stays_clean"])

    books = _books(exercise, 3, order=[0, 1], clean={1})
    books.give_back(1)
    because = MISCONCEPTIONS["never_given_back"]
    expect("free was [2]; give_back(1); free, sorted", sorted(books.free), [1, 2], because)
    expect("order was [0, 1]; give_back(1); order", list(books.order), [0])
    expect("clean was {1}; give_back(1); clean", set(books.clean), set())
    _random_books(exercise)


def task_2(exercise: ModuleType) -> None:
    """victim"""
    shown = "order [3, 0, 2, 1], all sole: victim()"
    got = _victim(exercise, [3, 0, 2, 1])
    name = {1: "most_recent_victim", 0: "parent_before_child"}.get(got) if isinstance(got, int) else None
    expect_whole(shown, got, 3, MISCONCEPTIONS[name] if name else "")
    got = _victim(exercise, [3, 0, 2, 1], clean={2, 1})
    because = MISCONCEPTIONS["sole_before_clean" if got == 3 else "most_recent_victim"] if got in (3, 1) else ""
    expect("order [3, 0, 2, 1], of which 2 and 1 are clean: victim()", got, 2, because)
    because = MISCONCEPTIONS["dropped_while_read"]
    got = _victim(exercise, [3, 0, 2, 1], clean={2, 1}, reading={2})
    expect("the same, but 2 is being read: victim()", got, 1, because)
    got = _victim(exercise, [3, 0], reading={3})
    expect("order [3, 0], both sole, 3 is being read: victim()", got, 0, because)
    because = MISCONCEPTIONS["always_a_victim"]
    expect("no copy at all: victim()", _victim(exercise, []), None, because)
    expect("order [3, 0], both being read: victim()", _victim(exercise, [3, 0], reading={0, 3}), None, because)

    generator = random.Random(12)
    for _ in range(300):
        order = generator.sample(range(8), generator.randint(0, 8))
        clean = {block for block in order if generator.random() < 0.4}
        reading = {block for block in order if generator.random() < 0.3}
        ranked = sorted((block not in clean, i) for i, block in enumerate(order) if block not in reading)
        books = _books(exercise, 8, order=order, clean=clean, reading=reading)
        shown = f"order {order}, clean {sorted(clean)}, being read {sorted(reading)}: "
        expect(f"{shown}victim()", books.victim(), order[ranked[0][1]] if ranked else None)
        found = (list(books.order), set(books.clean), set(books.reading), len(books.free))
        expect(f"{shown}order, clean, reading and free after victim()", found, (order, clean, reading, 8 - len(order)))


def task_3(exercise: ModuleType) -> None:
    """evict, bring_back"""
    # One device block, which holds a node's content; two host blocks, of which 0 is somebody else's.
    tiers, node = _tiers(exercise, host_blocks=2)
    tiers.swap.take()
    tiers.take()  # evicts
    shown = "device block 0 is needed by somebody, host block 1 is free: "
    because = MISCONCEPTIONS["host_for_device"] if tiers.operations == [SwapOut(1, 0)] else ""
    expect(f"{shown}the log", list(tiers.operations), [SwapOut(device=0, host=1)], because)
    expect(f"{shown}node.host", node.host, 1)

    tiers.release(0)
    tiers.operations.clear()
    tiers.swap.pin(1)
    shown = "the content is in host block 1, device block 0 is free: "
    expect(f"{shown}bring_back(node)", tiers.bring_back(node), 0)
    expect(f"{shown}the log", list(tiers.operations), [SwapIn(host=1, device=0)])
    expect(f"{shown}node.device", node.device, 0)
    because = MISCONCEPTIONS["copy_given_up"]
    expect(f"{shown}node.host", node.host, 1, because)
    expect(f"{shown}host blocks that hold a copy", tiers.swap.num_used, 2, because)
    expect(f"{shown}is host block 1 clean now", tiers.swap.is_clean(1), True)

    tiers.release(0)
    tiers.operations.clear()
    tiers.take()  # evicts it again
    shown = "brought back, and now its device block 0 is needed once more: "
    because = MISCONCEPTIONS["written_twice"]
    expect(f"{shown}the log", list(tiers.operations), [], because)
    expect(f"{shown}node.host", node.host, 1, because)
    expect(f"{shown}is host block 1 clean still", tiers.swap.is_clean(1), False, MISCONCEPTIONS["stays_clean"])

    because = MISCONCEPTIONS["hole_left"]
    for host_blocks, shown in ((1, "one host block, which is being read"), (0, "no host pool")):
        tiers, node = _tiers(exercise, host_blocks)
        if tiers.swap is not None:
            tiers.swap.pin(tiers.swap.take())
        tiers.take()
        expect(f"{shown}, device block 0 is needed: the log", list(tiers.operations), [], because)
        expect(f"{shown}, device block 0 is needed: nodes left in the tree", len(tiers.tree), 0, because)

    tiers, first = _tiers(exercise, host_blocks=2)
    tiers.release(_place(tiers, (3, 4)))  # `first` goes to host block 0
    tiers.operations.clear()
    tiers.swap.pin(0)
    tiers.bring_back(first)
    shown = "bringing back host block 0 evicts another node from device block 0 to host block 1: the log"
    expect(shown, list(tiers.operations), [SwapOut(device=0, host=1), SwapIn(host=0, device=0)])
    _random_traffic(exercise)


def _random_books(exercise: ModuleType) -> None:
    """Copies come, are used and go, against a plain list."""
    generator = random.Random(12)
    books = _books(exercise, 6)
    order: list[int] = []
    clean: set[int] = set()
    for _ in range(600):
        action = generator.choice(["take", "use", "use", "give back"])
        if action == "take" and len(order) < 6:
            block = books.take()
            expect(
                "a random story: take() gives a block that holds nothing",
                block in range(6) and block not in order,
                True,
            )
            order.append(block)
        elif action == "use" and order:
            block, is_clean = generator.choice(order), generator.random() < 0.5
            books.use(block, clean=is_clean)
            order = [other for other in order if other != block] + [block]
            clean = clean - {block} | ({block} if is_clean else set())
        elif action == "give back" and order:
            block = generator.choice(order)
            books.give_back(block)
            order.remove(block)
            clean.discard(block)
        expect("a random story: order", list(books.order), order)
        expect("a random story: clean", set(books.clean), clean)
        free = sorted(set(range(6)) - set(order))
        expect("a random story: free, sorted", sorted(books.free), free)


def _random_traffic(exercise: ModuleType) -> None:
    """Whole engines that are always short of blocks: answers, books and counts, against the engine's own tiers."""
    for host_blocks in (2, 5, 30):
        found = []
        for tiers in (exercise.Tiers, None):
            make = Parts().memory

            def memory(*args: Any, tiers: Any = tiers, make: Callable[..., Any] = make, **options: Any) -> Any:
                return make(*args, **options) if tiers is None else make(*args, **options, tiers=tiers)

            generator = random.Random(12)
            house = SmallEngine.of(Parts(memory=memory), 10, 2, host_blocks)
            requests = []
            for _ in range(30):
                prompt = [generator.randint(0, 1) for _ in range(generator.randint(1, 9))]
                requests.append(house.add(prompt, generator.randint(1, 8)))
                house.engine.step()
            house.run()
            expect(f"random traffic, {host_blocks} host blocks: all answers right", all(map(is_right, requests)), True)
            stats = house.memory.stats()
            found.append((stats.swaps_out, stats.swaps_in, stats.drops, stats.tokens_recomputed))
        shown = f"random traffic, {host_blocks} host blocks: blocks out, blocks in, drops, tokens recomputed"
        expect(shown, found[0], found[1])


def _books(
    exercise: ModuleType,
    num_blocks: int,
    order: Iterable[int] = (),
    clean: Set[int] = frozenset(),
    reading: Set[int] = frozenset(),
) -> Any:
    """Books in a given state, whatever `take` does."""
    books = exercise.SwapManager(num_blocks)
    books.free[:] = [block for block in reversed(range(num_blocks)) if block not in order]
    books.order[:] = order
    books.clean |= clean
    books.reading |= reading
    return books


def _victim(
    exercise: ModuleType, order: Iterable[int], clean: Set[int] = frozenset(), reading: Set[int] = frozenset()
) -> object:
    books = _books(exercise, 4, order, clean, reading)
    try:
        victim: object = books.victim()
        return victim
    except NotImplementedError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _tiers(exercise: ModuleType, host_blocks: int) -> tuple[Any, Node]:
    """One device block, which holds a node that nobody needs at the moment."""
    tiers = exercise.Tiers(
        BlockPool(1), PrefixTree(2), SwapManager(host_blocks) if host_blocks else None, poison_freed=False
    )
    tiers.tree.hold_root("check")
    tiers.release(_place(tiers, (1, 2)))
    return tiers, next(iter(tiers.tree))


def _place(tiers: Any, tokens: tuple[int, ...]) -> int:
    """A new node in a device block that is held."""
    block: int = tiers.take()
    tiers.place(tiers.tree.insert(tiers.tree.root("check"), tokens), block)
    return block
