"""Checks of lesson 10's exercise. Small trees first, to be drawn by hand; then random ones, and a whole engine."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from lessons.runner.checks import expect, expect_error
from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import Node
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner, simulated_answer

MISCONCEPTIONS = {
    "keyed_by_own_tokens": "The same words after another beginning are other K and V: in every layer but the first, a "
    "token's K and V are made of all that stands before it. A block is named by its whole path, so file it under its "
    "parent and its tokens, not under its tokens alone.",
    "inserted_twice": "Content that is in the tree already must not get a second node: the first one's block would be "
    "lost from sight, though it is still held. Look for the child before you make one.",
    "children_not_counted": "A parent must know how many children it has. With a count of 0 it passes for a leaf, is "
    "given up first, and what hangs below it can never be found again.",
    "count_left_behind": "A child that goes is one child less for its parent. If the count stays, the parent never "
    "becomes a leaf again, and its block is never given up.",
    "beginning_taken_out": "Only a leaf can go. Below a block that is gone nothing can be reached, since every walk "
    "begins at the root: the blocks there would be lost with their tokens in them.",
    "root_taken_out": "A root stands for no block, and no parent has it on file: it is where all walks of a salt "
    "begin. Even when it has no children there is nothing to take out, and the caller must be told so.",
    "matched_to_the_end": "One token must be left to compute, even when all are cached: the next token is drawn from "
    "the logits of the last one, and logits are not in the cache. The walk stops before `stop`, not at the end.",
    "partial_block_as_full": "A block of which only the beginning matches is no part of the path: its other slots hold "
    "somebody else's tokens, and the sequence would go on writing in a block that others read. Copying it is task 3.",
    "always_from_the_first_token": "The walk may go on in the middle: `node` stands for the block before `start`, so "
    "the first tokens to look up are those at `start`.",
    "stopped_one_block_early": "A block that ends exactly at `stop` is still before it: position `stop` is the first "
    "one that it must not have. The boundary is inclusive here, `start + block_size <= stop`.",
    "first_that_begins_alike": "Several children can begin with the same token. Each further token that matches need "
    "not be computed, so the longest common beginning is wanted, not the first that is found.",
    "counted_past_the_difference": "Only the beginning counts. Behind the first difference equal tokens have another "
    "past, so their K and V are others: stop counting there.",
    "copied_before_it_was_computed": "A pending node's tokens are computed by the open step, and copies are made "
    "before it computes. Sharing its block in place is good, since every layer writes before it reads; "
    "copying it now would copy what was there before.",
}


def task_1(exercise: ModuleType) -> None:
    """child, insert, take_out"""
    tree = exercise.PrefixTree(2)
    root = tree.hold_root("questions")
    expect("an empty tree: child(root, (1, 2))", tree.child(root, (1, 2)), None)
    first = tree.insert(root, (1, 2))
    expect("insert(root, (1, 2)) returns a node with tokens", _tokens(first), [1, 2])
    expect("insert(root, (1, 2)) returns a node whose parent is the root", first.parent is root, True)
    expect("child(root, (1, 2)) is the node that was inserted", tree.child(root, (1, 2)) is first, True)
    because = MISCONCEPTIONS["children_not_counted"]
    expect("one node was inserted below the root; root.num_children", root.num_children, 1, because)
    because = MISCONCEPTIONS["inserted_twice"]
    expect("insert(root, (1, 2)) once more gives the same node", tree.insert(root, (1, 2)) is first, True, because)
    expect("the same was inserted twice; root.num_children", root.num_children, 1, because)

    other = tree.insert(root, (5, 6))
    below = tree.insert(first, (7, 7))
    because = MISCONCEPTIONS["keyed_by_own_tokens"]
    shown = "[7, 7] was inserted after [1, 2]; after [5, 6], child(node of [5, 6], (7, 7)) gives"
    expect(shown, _path(tree.child(other, (7, 7))), None, because)
    twin = tree.insert(other, (7, 7))
    expect("[7, 7] is inserted after [5, 6], too; the path of the node", _path(twin), [[5, 6], [7, 7]], because)
    expect("[7, 7] is there twice; child(node of [1, 2], (7, 7)) is still the first", tree.child(first, (7, 7)), below)
    expect("nodes in all; len(tree)", len(tree), 4)

    expect_error(
        "take_out(node of [1, 2]), below which is [7, 7]",
        ValueError,
        lambda: tree.take_out(first),
        MISCONCEPTIONS["beginning_taken_out"],
    )
    expect("after the refusal; child(root, (1, 2)) is still there", tree.child(root, (1, 2)) is first, True)
    expect("after the refusal; root.num_children", root.num_children, 2)
    tree.take_out(below)
    expect("[7, 7] after [1, 2] was taken out; child(node of [1, 2], (7, 7))", tree.child(first, (7, 7)), None)
    because = MISCONCEPTIONS["count_left_behind"]
    expect("its only child was taken out; num_children of [1, 2]", first.num_children, 0, because)
    expect("[7, 7] after [5, 6] is still there", tree.child(other, (7, 7)) is twin, True)
    tree.take_out(first)
    expect("[1, 2] is a leaf now and was taken out; root.num_children", root.num_children, 1)
    tree.take_out(twin)
    tree.take_out(other)
    because = MISCONCEPTIONS["root_taken_out"]
    expect_error("take_out(root), when all below it were taken out", ValueError, lambda: tree.take_out(root), because)
    _random_tree(exercise)


def task_2(exercise: ModuleType) -> None:
    """follow"""
    tree = exercise.PrefixTree(2)
    root = tree.hold_root("questions")
    expect("an empty tree: follow(root, [1, 2, 3], 0, 2)", _all_tokens(tree.follow(root, [1, 2, 3], 0, 2)), [])
    node = root
    for tokens in ((1, 2), (3, 4), (5, 6)):
        node = tree.insert(node, tokens)
    tree.insert(root, (1, 9))
    drawn = "root - [1, 2] - [3, 4] - [5, 6] and root - [1, 9]: "

    def asked(tokens: list[int], start: int, stop: int, expected: object, name: str, where: Any = root) -> None:
        node = "root" if where is root else f"node of {_tokens(where)}"
        got = _all_tokens(tree.follow(where, tokens, start, stop))
        what = f"{drawn}follow({node}, {tokens}, {start}, {stop})"
        expect(what, got, expected, MISCONCEPTIONS[name] if name else "")

    asked([1, 2, 3, 4, 9], 0, 4, [[1, 2], [3, 4]], "stopped_one_block_early")
    asked([1, 2, 3, 4, 5, 6], 0, 4, [[1, 2], [3, 4]], "matched_to_the_end")
    asked([1, 2, 3, 4], 0, 3, [[1, 2]], "partial_block_as_full")
    asked([1, 2, 3, 4, 5, 6], 0, 5, [[1, 2], [3, 4]], "partial_block_as_full")
    asked([1, 2, 9, 9, 5, 6, 0], 0, 6, [[1, 2]], "")
    asked([1, 9, 3, 4, 0], 0, 4, [[1, 9]], "")
    first = tree.child(root, (1, 2))
    asked([1, 2, 3, 4, 5, 6, 0], 2, 6, [[3, 4], [5, 6]], "always_from_the_first_token", first)
    asked([1, 2], 0, 1, [], "")

    generator = random.Random(10)
    for _ in range(40):
        size = generator.choice([1, 2, 3])
        tree = exercise.PrefixTree(size)
        root = tree.hold_root(None)
        texts = [[generator.randrange(2) for _ in range(12)] for _ in range(6)]
        for text in texts[:4]:
            _grow(tree, root, text)
        for text in texts:
            stop = generator.randint(0, 11)
            whole = [_common(text, old) // size for old in texts[:4]]
            num = min(max(whole), stop // size)
            expected = [text[i * size : (i + 1) * size] for i in range(num)]
            got = tree.follow(root, text, 0, stop)
            what = f"block_size {size}, a tree of {texts[:4]}: follow(root, {text}, 0, {stop})"
            expect(what, _all_tokens(got), expected)


def task_3(exercise: ModuleType) -> None:
    """nearest"""
    tree = exercise.PrefixTree(4)
    root = tree.hold_root("questions")
    expect("an empty tree: nearest(root, (1, 2))", _found(tree.nearest(root, (1, 2))), (None, 0))
    for tokens in ((1, 2, 3, 4), (1, 2, 7, 8), (9, 2, 3, 4)):
        tree.insert(root, tokens)
    drawn = "block_size 4, children [1, 2, 3, 4], [1, 2, 7, 8], [9, 2, 3, 4]: "

    def asked(tokens: tuple[int, ...], expected: tuple[object, int], name: str) -> None:
        because = MISCONCEPTIONS[name] if name else ""
        expect(f"{drawn}nearest(root, {tokens})", _found(tree.nearest(root, tokens)), expected, because)

    asked((1, 2, 7), ([1, 2, 7, 8], 3), "first_that_begins_alike")
    asked((9, 5, 3, 4), ([9, 2, 3, 4], 1), "counted_past_the_difference")
    asked((6, 2, 3, 4), (None, 0), "counted_past_the_difference")
    asked((), (None, 0), "")
    asked((9,), ([9, 2, 3, 4], 1), "")
    tree.child(root, (1, 2, 7, 8)).pending = True
    drawn = drawn.replace("[1, 2, 7, 8]", "[1, 2, 7, 8] (pending)")
    asked((1, 2, 7), ([1, 2, 3, 4], 2), "copied_before_it_was_computed")

    generator = random.Random(10)
    for _ in range(60):
        tree = exercise.PrefixTree(4)
        root = tree.hold_root(None)
        blocks = [tuple(generator.randrange(3) for _ in range(4)) for _ in range(5)]
        for block in dict.fromkeys(blocks):
            tree.insert(root, block).pending = generator.random() < 0.3
        there = [node for node in tree.children(root) if not node.pending]
        wanted = tuple(generator.randrange(3) for _ in range(generator.randint(0, 4)))
        most = max((_common(node.tokens, wanted) for node in there), default=0)
        node, num = tree.nearest(root, wanted)
        what = f"children {[list(node.tokens) for node in there]}: nearest(root, {wanted}), "
        expect(f"{what}how many tokens", num, most)
        expect(f"{what}the node's own common beginning", _common(_tokens(node) or [], wanted), most)
    _whole_engine(exercise)


def _random_tree(exercise: ModuleType) -> None:
    """Five hundred insertions and removals against a dictionary of paths."""
    generator = random.Random(10)
    tree = exercise.PrefixTree(1)
    root = tree.hold_root(None)
    nodes: dict[tuple[int, ...], Any] = {(): root}
    for _ in range(500):
        path = generator.choice(sorted(nodes))
        children = [other for other in nodes if len(other) == len(path) + 1 and other[:-1] == path]
        if not children and path and generator.random() < 0.6:
            tree.take_out(nodes.pop(path))
            expect(f"a random tree: child() of {path}, taken out", tree.child(nodes[path[:-1]], path[-1:]), None)
        else:
            token = generator.randrange(4)
            node = tree.insert(nodes[path], (token,))
            known = nodes.setdefault((*path, token), node)
            expect(f"a random tree: insert {(*path, token)} gives the node that is there", node is known, True)
    expect("a random tree: len(tree)", len(tree), len(nodes) - 1)
    for path, node in nodes.items():
        num = sum(len(other) == len(path) + 1 and other[:-1] == path for other in nodes)
        expect(f"a random tree: num_children of {path}", node.num_children, num)


def _whole_engine(exercise: ModuleType) -> None:
    """Requests with common beginnings through the engine's own manager, on this tree and on the engine's."""
    from minipaged.memory.prefix_tree import PrefixTree

    generator = random.Random(10)
    bases = [[generator.randrange(50) for _ in range(14)] for _ in range(3)]
    prompts = [[*generator.choice(bases)[: generator.randint(3, 14)], generator.randrange(50)] for _ in range(30)]
    counted = []
    for make in (exercise.PrefixTree, PrefixTree):
        memory = KVManager(BlockPool(24), make(4))
        model = ModelConfig(50, 96, 1, 1, 1, 1, 1, 1, eos_token_ids=())
        engine = Engine(Scheduler(memory, max_sequences=4), SimulatedRunner(24, 4, 50), model)
        for prompt in prompts:
            request = engine.add_request(prompt, SamplingParams(max_tokens=6, seed=1))
            while not request.finished:
                engine.step()
                memory.check()
            answer = request.sequences[0].output_token_ids
            expect(f"an engine on this tree, prompt {prompt}: its answer", answer, simulated_answer(prompt, 6, 50, 1))
        stats = memory.stats()
        counted.append((stats.tokens_from_device, stats.tokens_copied))
    expect("an engine on this tree, 30 prompts: tokens shared in place, and copied", counted[0], counted[1])


def _grow(tree: Any, root: Node, text: list[int]) -> None:
    node: Any = root
    for i in range(0, len(text) - tree.block_size + 1, tree.block_size):
        node = tree.insert(node, tuple(text[i : i + tree.block_size]))


def _tokens(node: Any) -> object:
    return list(node.tokens) if isinstance(node, Node) else node


def _path(node: Any) -> object:
    """The tokens of a node and of all above it, from the root down."""
    path: list[list[int]] = []
    while isinstance(node, Node) and node.parent is not None:
        path.insert(0, list(node.tokens))
        node = node.parent
    return path or None


def _all_tokens(nodes: Any) -> object:
    return [_tokens(node) for node in nodes] if isinstance(nodes, (list, tuple)) else nodes


def _found(answer: Any) -> object:
    return (_tokens(answer[0]), answer[1]) if isinstance(answer, (tuple, list)) and len(answer) == 2 else answer


def _common(a: Any, b: Any) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
