"""What each kernel of the ladder costs, by arithmetic: programs, steps one after another, numbers read from the cache.

The lesson prints these beside what the kernels themselves counted. Needs no Triton.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PROCESSORS = 108  # streaming multiprocessors of an A100; each runs a program or a few at a time


@dataclass(frozen=True, slots=True)
class Setting:
    """One decode step: a new token for each sequence.

    Args:
        contexts: keys of each sequence.
        heads, kv_heads: query heads, and KV heads that they share.
        head_dim: numbers in a head.
        block_size: slots in a block.
        tile: keys that a tiled kernel loads at a time.
        splits: programs among which the split kernel shares a context.
        itemsize: bytes of a number.
    """

    contexts: tuple[int, ...]
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 32
    block_size: int = 16
    tile: int = 32
    splits: int = 4
    itemsize: int = 4

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.heads // self.kv_heads

    @property
    def held_bytes(self) -> int:
        """K and V of all contexts, each once."""
        return 2 * sum(self.contexts) * self.kv_heads * self.head_dim * self.itemsize

    def tiles(self, context: int) -> int:
        return -(-context // self.tile)

    def tiles_of_split(self, context: int, split: int) -> range:
        """The tiles that one split of a context has; none, where there are fewer tiles than splits."""
        tiles = self.tiles(context)
        return range(tiles * split // self.splits, tiles * (split + 1) // self.splits)


@dataclass(frozen=True, slots=True)
class Cost:
    """One kernel's.

    Args:
        programs: that can run at the same time.
        steps: loads of a block or tile that the longest program makes one after another.
        read_bytes: of K and V.
    """

    programs: int
    steps: int
    read_bytes: int


def naive(setting: Setting) -> Cost:
    """One program per query head; two walks over the blocks, K in both and V in the second."""
    programs = len(setting.contexts) * setting.heads
    blocks = -(-max(setting.contexts) // setting.block_size)
    return Cost(programs, 2 * blocks, setting.held_bytes * setting.group * 3 // 2)


def tiled(setting: Setting) -> Cost:
    """One program per query head; one walk over the tiles."""
    programs = len(setting.contexts) * setting.heads
    return Cost(programs, setting.tiles(max(setting.contexts)), setting.held_bytes * setting.group)


def grouped(setting: Setting) -> Cost:
    """One program for all query heads that share a KV head."""
    programs = len(setting.contexts) * setting.kv_heads
    return Cost(programs, setting.tiles(max(setting.contexts)), setting.held_bytes)


def split(setting: Setting) -> Cost:
    """As grouped, with `splits` programs for each."""
    steps = max(len(setting.tiles_of_split(context, s)) for context in setting.contexts for s in range(setting.splits))
    return Cost(grouped(setting).programs * setting.splits, steps, setting.held_bytes)


def parts_bytes(setting: Setting) -> int:
    """What splitting costs: acc, top and total of each row and split, float32, written, and read by the merge."""
    rows = len(setting.contexts) * setting.heads * setting.splits
    return 2 * 4 * rows * (setting.head_dim + 2)


@dataclass(frozen=True, slots=True)
class RaggedCost:
    """What the engine's kernel costs on a step of decodes and prompts, unsplit, for each KV head.

    Args:
        launched: programs in the grid, a bound that needs no look at the lengths.
        busy: those that find rows to compute.
        keys_read: of each sequence, over all its programs.
    """

    launched: int
    busy: int
    keys_read: tuple[int, ...]


def ragged(mix: Sequence[tuple[int, int]], group: int, rows: int) -> RaggedCost:
    """A program takes `rows` rows, a row being a token in one query head, and reads the keys that the last one sees.

    Args:
        mix: (new tokens, context) of each sequence.
        group: query heads that share a KV head.
        rows: of one program, `BLOCK_M`.
    """
    read, busy = [], 0
    for new, context in mix:
        ends = [
            context - new + (min(first + rows, new * group) - 1) // group + 1 for first in range(0, new * group, rows)
        ]
        busy += len(ends)
        read.append(sum(ends))
    return RaggedCost(sum(new for new, _ in mix) * group // rows + len(mix), busy, tuple(read))
