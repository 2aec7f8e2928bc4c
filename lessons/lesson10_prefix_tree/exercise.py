"""Lesson 10: a tree of token prefixes. Three tasks; `python -m lessons check 10` says how you stand.

A node stands for one full block: `node.tokens` (a tuple of block_size token ids), `node.parent` (the node of the block
before it, or a root), `node.num_children`, `node.pending`. What is given: `self.nodes`, an empty dict for all nodes,
`self.make(parent, tokens)`, which makes one, `self.children(parent)`, and `self.block_size`.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

from lessons.lesson10_prefix_tree.given import GivenTree, Node, Tokens


class PrefixTree(GivenTree):
    """Which beginnings are resident."""

    def child(self, parent: Node, tokens: Tokens) -> Node | None:
        """Task 1. The child of `parent` that stands for exactly these tokens; None when there is none.

        Below the root are [1, 2] and [5, 6], and below [1, 2] is [3, 4]:
        child(root, (5, 6)) -> that node; child(root, (3, 4)) -> None, for [3, 4] is a child of [1, 2].
        """
        raise NotImplementedError("lesson 10, task 1: find a child by its tokens")

    def insert(self, parent: Node, tokens: Tokens) -> Node:
        """Task 1, too. The child of `parent` for these tokens: the one that is there, or else a new one.

        A new one is made, filed in `self.nodes` so that `child` finds it, and counted in `parent.num_children`.

        insert(root, (1, 2)) -> a new node, root.num_children == 1. Once more -> the same node, and still 1.
        """
        raise NotImplementedError("lesson 10, task 1: add a child")

    def take_out(self, node: Node) -> None:
        """Task 1, too. A leaf leaves the tree: `child` does not find it any more, its parent has one child less.

        Raises:
            ValueError: it has children, or it is a root, which stands for no block. Nothing has changed then.
        """
        raise NotImplementedError("lesson 10, task 1: take a leaf out")

    def follow(self, node: Node, tokens: Items[int], start: int, stop: int) -> list[Node]:
        """Task 2. The nodes of the full blocks that match, from `node` downwards.

        Args:
            node: stands for the block before `start`; a root when `start` is 0.
            tokens: all tokens of a sequence.
            start: the first position to look at, a multiple of block_size.
            stop: the position to stop before: no block of the path reaches beyond it. (The engine gives
                len(tokens) - 1: one token must be left to compute, or there is nothing to draw the next one from.)

        The tree of task 1: tokens [1, 2, 3, 4, 9] -> [node of [1, 2], node of [3, 4]] when stop is 4, but only
        [node of [1, 2]] when stop is 3.
        """
        raise NotImplementedError("lesson 10, task 2: follow a prompt down the tree")

    def nearest(self, parent: Node, tokens: Tokens) -> tuple[Node | None, int]:
        """Task 3. The child of `parent` that begins most like `tokens`, and how many of its first tokens are the same.

        At most block_size tokens are asked for; there may be fewer, or none. A child that is `pending` does not count:
        the open step is still to compute it, so nobody can copy from it yet. Of two that are equally near, either.

        Returns:
            (None, 0) when no child has even the first token in common.

        block_size 4; children [1, 2, 3, 4] and [1, 2, 7, 8]: nearest(parent, (1, 2, 7)) -> (the second, 3).
        """
        raise NotImplementedError("lesson 10, task 3: find the child that begins most alike")
