"""Checks an answer to lesson 7: the tile loop by what single programs find, the merge by hand-made splits.

A kernel that goes astray reads what lies there. So the caches here stand amid NaN, and tables amid the number of a
block full of NaN: what is read by mistake shows. An address that is wrong by more than that still ends the process.
"""

from __future__ import annotations

import mmap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import torch

from lessons.lesson07_triton_kernel.language import INTERPRETED, device, require
from lessons.runner.checks import Wrong, expect

MISCONCEPTIONS = {
    "masked_by_block": (
        "A block belongs to a sequence whole, and yet its last block is seldom full. Where the context ends, and not "
        "where the block ends, the mask must end: behind it lies what an earlier owner left, or NaN."
    ),
    "zero_is_no_weight": (
        "A masked load gives 0, and 0 is a score like any other: exp(0 - top) is no small weight. Keys that are not "
        "there need the score -inf."
    ),
    "table_by_token": (
        "The table has an entry for every block, not for every token: key j is in the block table[j // BLOCK_SIZE]."
    ),
    "one_lookup_per_tile": (
        "A tile is so many keys as suit the GPU, and a block so many as suit the memory. A tile may cross into the "
        "next block, which lies somewhere else: each key's block is looked up by itself."
    ),
    "forgotten_rescale": (
        "What is added up so far was weighted with exp(score - old top). When a tile brings a higher top, total and "
        "acc must shrink by exp(old top - new top), or old keys keep too much weight."
    ),
    "tile_maximum": (
        "The tile's own highest score took the place of the highest so far. top may only rise: measured against a "
        "lower one, what was seen before becomes exp of a large number, and overflows."
    ),
    "every_split_reads_all": (
        "A program has the tiles tile_0 to tile_end - 1, and the others have the rest. If each begins at the first "
        "tile, keys are counted more than once and loaded as often as there are splits."
    ),
    "address_in_32_bits": (
        "A block's number fits into 32 bits, its address need not: block * kv_block passes 2,147,483,647 in a cache of "
        "more numbers than that, and wraps round to a negative address. Make it 64 bits wide before multiplying."
    ),
    "mean_of_outputs": (
        "Each split's attention is a mean over its own keys only. The mean of the means is the mean of all only if "
        "every split carries the same weight; so weigh each by its own total and top."
    ),
    "sums_without_tops": (
        "Each split's sums were taken relative to its own top. Before they can be added, each has to be brought to a "
        "common one, by the factor exp(its top - highest top)."
    ),
    "empty_split_is_zero": (
        "A split without a tile has the top -inf, and its weight exp(-inf - highest) is 0 all by itself. With 0 in the "
        "place of -inf it becomes the highest top where all scores are negative, and real weights vanish beside it."
    ),
    "exponential_of_top": (
        "exp(top) cancels out on paper. In float32 it is infinite from a top of 89 on, and infinite / infinite is NaN. "
        "Only differences of tops go into exp, and against the highest none of them is above 0."
    ),
}

WIDTH, TILE, TRAP = 16, 16, 9  # the head size; keys in a tile; the number of a block full of NaN
_AMID = 1 << 20  # numbers of NaN before and behind a cache


def task_1(exercise: ModuleType) -> None:
    """`tile_loop`."""
    require()
    told = MISCONCEPTIONS
    loop = exercise.tile_loop
    counting = [float(i) for i in range(1, 65)]  # values 1, 2, 3 …

    case = _Case([0.0] * 16, counting, [2], block_size=16, beyond=2)
    case.expect(loop, "16 keys of score 0 in one block, with the values 1 to 16", [0], [16], [136])
    case = _Case([0.0] * 5, counting, [2], block_size=16, beyond=2)
    try:
        case.expect(loop, "5 keys of score 0 in a block of 16 slots, with the values 1 to 5", [0], [5], [15])
    except Wrong as wrong:
        wrong.because = told["masked_by_block" if "nan" in str(wrong.got) else "zero_is_no_weight"]
        raise
    case = _Case([0.0] * 32, counting, [2, 1], block_size=16)
    case.expect(
        loop, "32 keys of score 0 in blocks 2 and 1 of 16 slots, with the values 1 to 32", [0], [32], [528],
        because=told["table_by_token"],
    )  # fmt: skip
    case = _Case([0.0] * 16, counting, [2, 0, 5, 3], block_size=4)
    case.expect(
        loop, "one tile of 16 keys of score 0 in blocks 2, 0, 5 and 3 of 4 slots", [0], [16], [136],
        because=told["one_lookup_per_tile"],
    )  # fmt: skip

    small = float(torch.tensor(-2.0).exp())  # the weight of score 0 beside a score of 2
    case = _Case([0.0] * 16 + [2.0] * 16, [1.0] * 16 + [3.0] * 16, [2, 1], block_size=16)
    case.expect(
        loop, "a tile with score 0 and value 1, then a tile with score 2 and value 3",
        [2], [16 * small + 16], [16 * small + 48], because=told["forgotten_rescale"],
    )  # fmt: skip

    case = _Case([2.0] * 16 + [0.0] * 16, [3.0] * 16 + [1.0] * 16, [2, 1], block_size=16)
    case.expect(
        loop, "the other way round: a tile with score 2 and value 3, then a tile with score 0 and value 1",
        [2], [16 * small + 16], [16 * small + 48], because=told["tile_maximum"],
    )  # fmt: skip

    case = _Case([0.0] * 64, [1.0] * 64, [4, 1, 6, 3], block_size=16)
    case.expect(
        loop, "4 tiles of score 0 and value 1, by two programs of two tiles each", [0, 0], [32, 32], [32, 32],
        because=told["every_split_reads_all"],
    )  # fmt: skip
    case.expect(
        loop, "one tile of score 0 and value 1, by two programs of which the first has no tile",
        [float("-inf"), 0], [0, 16], [0, 16], context=16, because=told["every_split_reads_all"],
    )  # fmt: skip
    case.expect(loop, "4 tiles by one program; what it found, and the numbers that load_kv counted", [0], [64], [64],
                loaded=2 * 64 * WIDTH)  # fmt: skip

    far = _far_cache()
    if far is not None:
        case = _Case([0.0] * 16, counting, [2], block_size=16, kv_layer=far)
        case.expect(
            loop, "16 keys with the values 1 to 16 in block 2 of a cache of which each block is 2**30 numbers long",
            [0], [16], [136], because=told["address_in_32_bits"],
        )  # fmt: skip
    _expect_oracle(loop)


def task_2(exercise: ModuleType) -> None:
    """`merge_splits`."""
    require()
    from lessons.lesson07_triton_kernel.decode_kernel import merge_parts

    told = MISCONCEPTIONS
    nothing = float("-inf")

    def merged(what: str, top: list[float], total: list[float], acc: list[float], expected: float, why: str) -> None:
        where = device()
        # The same number all along a row, but for the last two, which are multiples of it.
        factors = torch.tensor([1.0] * (WIDTH - 2) + [2.0, -3.0])
        wide = torch.tensor([float(number) for number in acc])[:, None] * factors
        tensors = (torch.as_tensor(t, dtype=torch.float32).to(where)[None, None] for t in (top, total, wide))
        with _usable(exercise.merge_splits, what, "the result, (HEAD_DIM)"):
            got = merge_parts(*tensors, merge_splits=exercise.merge_splits)[0, 0].cpu()  # (WIDTH)
        _near(what, got[[0, -2, -1]], [expected, 2 * expected, -3 * expected], why, "result")

    merged("two splits of one key each, scores 0 and values 2 and 6 (and the same times 2 and -3)",
           [0, 0], [1, 1], [2, 6], 4.0, "")  # fmt: skip
    merged("splits of one and of two keys, all scores 0, values 2 and then 6 and 7 (and the same times 2 and -3)",
           [0, 0], [1, 2], [2, 13], 5.0, told["mean_of_outputs"])  # fmt: skip
    e2 = float(torch.tensor(2.0).exp())
    merged("two splits of one key each, scores 0 and 2 and values 1 and 3",
           [0, 2], [1, 1], [1, 3], (1 + 3 * e2) / (1 + e2), told["sums_without_tops"])  # fmt: skip
    merged("scores of 300 in both of two splits, values 2 and 6",
           [300, 300], [1, 1], [2, 6], 4.0, told["exponential_of_top"])  # fmt: skip
    merged("an empty split, and one of two keys with score -200 and values 2 and 4",
           [nothing, -200], [0, 2], [0, 6], 3.0, told["empty_split_is_zero"])  # fmt: skip
    merged("scores of -300 in both of two splits, values 2 and 6",
           [-300, -300], [1, 1], [2, 6], 4.0, told["exponential_of_top"])  # fmt: skip

    generator = torch.Generator().manual_seed(7)
    scores = 5 * torch.randn(8, 6, generator=generator)  # 8 splits of 6 keys
    values = torch.randn(8, 6, WIDTH, generator=generator)
    top = scores.amax(1)
    weights = (scores - top[:, None]).exp()  # (8, 6)
    acc = (weights[:, :, None] * values).sum(1)
    parts = (t.to(device())[None, None] for t in (top, weights.sum(1), acc))
    got = merge_parts(*parts, merge_splits=exercise.merge_splits)[0, 0].cpu()
    expected = scores.flatten().softmax(0) @ values.flatten(0, 1)
    _near("8 random splits of 6 keys each; the first 4 numbers", got[:4], expected[:4].tolist(), "", "result")
    _near("8 random splits of 6 keys each; the other numbers", got[4:], expected[4:].tolist(), "", "result")


class _Case:
    """One sequence with one head, whose scores and values are given: number 0 of each key is its score.

    Args:
        scores: of the keys, in order.
        values: of the keys, in order; all numbers of a value are the same.
        table: the blocks in which they are put.
        block_size: slots in a block.
        beyond: what a reader finds in the table behind the end.
        kv_layer: a cache to use, full of anything; one amid NaN when None.
    """

    def __init__(
        self,
        scores: Sequence[float],
        values: Sequence[float],
        table: Sequence[int],
        *,
        block_size: int,
        beyond: int = TRAP,
        kv_layer: torch.Tensor | None = None,
    ) -> None:
        where = device()
        if kv_layer is None:
            shape = (TRAP + 1, 2, 1, block_size, WIDTH)
            size = shape[0] * shape[1] * block_size * WIDTH
            memory = torch.full((2 * _AMID + size,), float("nan"), device=where)
            kv_layer = memory[_AMID : _AMID + size].view(shape)
        self.context = len(scores)
        keys = torch.zeros(len(scores), WIDTH)
        keys[:, 0] = torch.tensor(scores)
        for j, key in enumerate(keys):
            block, slot = table[j // block_size], j % block_size
            kv_layer[block, 0, 0, slot] = key.to(kv_layer)
            kv_layer[block, 1, 0, slot] = values[j]
        self.kv_layer = kv_layer
        around = torch.full((4096,), beyond, dtype=torch.int32, device=where)
        around[2048 : 2048 + len(table)] = torch.tensor(table, dtype=torch.int32)
        self.tables = around[None, 2048 : 2048 + len(table)]

    def expect(
        self,
        loop: object,
        what: str,
        top: Sequence[float],
        total: Sequence[float],
        acc: Sequence[float],
        *,
        context: int | None = None,
        loaded: int | None = None,
        because: str = "",
    ) -> None:
        """What each split finds, as many as `top` has; all numbers of acc are the same."""
        from lessons.lesson07_triton_kernel.decode_kernel import attend_in_parts

        where = device()
        query = torch.zeros(1, 1, WIDTH, device=where, dtype=self.kv_layer.dtype)
        query[..., 0] = 1.0
        contexts = torch.tensor([context or self.context], dtype=torch.int32, device=where)
        counter = torch.zeros(2, dtype=torch.int64, device=where)
        with _usable(loop, what, "top (ROWS), total (ROWS) and acc (ROWS, HEAD_DIM)"):
            found = attend_in_parts(
                query, self.kv_layer, self.tables, contexts, 1.0,
                splits=len(top), tile=TILE, counter=counter, tile_loop=loop,
            )  # fmt: skip
        names, wanted = ("top", "total", "acc"), (top, total, acc)
        got = [found[0][0, 0], found[1][0, 0], found[2][0, 0, :, 0]]
        if not all(_same(g.cpu(), w) for g, w in zip(got, wanted, strict=True)):
            raise Wrong(what, _said(names, [g.tolist() for g in got]), _said(names, wanted), because)
        last = found[2][0, 0, :, -1].cpu()
        if not _same(last, acc):
            raise Wrong(
                f"{what}; number {WIDTH - 1} of acc", _said(names[2:], [last.tolist()]), _said(names[2:], [acc])
            )
        if loaded is not None:
            expect(f"{what} (K and V, {WIDTH} numbers each)", int(counter[0]), loaded)


@contextmanager
def _usable(function: object, what: str, expected: str) -> Iterator[None]:
    """An error of the frame, and not of the answer's own lines, comes from what the answer returned: it says so."""
    try:
        yield
    except Exception as error:
        file = getattr(getattr(function, "fn", None), "__code__", None)
        inside = any(file and frame.filename == file.co_filename for frame in traceback.extract_tb(error.__traceback__))
        if isinstance(error, NotImplementedError) or not file or inside or not INTERPRETED:
            raise
        name, said = file.co_name, f"{type(error).__name__}: {error}"
        raise Wrong(f"{what}: what {name} returns cannot be used", said, expected) from error


def _far_cache() -> torch.Tensor | None:
    """Three blocks of which the last lies 2**31 numbers behind the first; None where that cannot be had.

    The memory is promised, and all but a few pages of it never touched. As much lies before block 0, so that an address
    that has wrapped round is still one that can be read.
    """
    shape, block = (3, 2, 1, 16, WIDTH), 2**30
    numbers = 2**32 + 2 * 16 * WIDTH
    try:
        if device() == "cpu":
            no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
            pages = mmap.mmap(-1, 2 * numbers, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
            memory = torch.frombuffer(pages, dtype=torch.float16)
        else:
            memory = torch.empty(numbers, dtype=torch.float16, device="cuda")
            memory[: 2 * 16 * WIDTH] = 0.0
    except (OSError, RuntimeError):  # no such address space, no such memory
        return None
    return memory.as_strided(shape, (block, 16 * WIDTH, 16 * WIDTH, WIDTH, 1), 2**31)


def _expect_oracle(loop: object) -> None:
    """Random sequences, with heads in groups, against a gather and a softmax in float64."""
    from lessons.lesson07_triton_kernel.decode_kernel import decode_attention
    from minipaged.cli.kernel_problems import TOLERANCE, make

    for heads, block_size, contexts, dtype in (
        ((4, 1), 4, (37, 1, 16), torch.float32),
        ((4, 2), 32, (33, 70), torch.float16),
    ):
        problem = make(heads, WIDTH, block_size, tuple((1, context) for context in contexts), dtype, seed=7)
        where = device()
        answer = decode_attention(
            problem.query.to(where), problem.kv_layer.to(where), problem.block_tables.to(where),
            problem.context_lens.to(where), problem.scale, tile=TILE, tile_loop=loop,
        ).cpu()  # fmt: skip
        error = problem.error(answer)
        if not error <= TOLERANCE[dtype]:
            raise Wrong(
                f"random sequences of {', '.join(map(str, contexts))} keys, {heads[0]} query heads on {heads[1]} KV "
                f"heads, blocks of {block_size} slots, {str(dtype).removeprefix('torch.')}",
                f"at worst {error:.3g} away",
                f"at most {TOLERANCE[dtype]:.3g} from a gather and a softmax in float64",
            )


def _same(got: torch.Tensor, expected: Sequence[float]) -> bool:
    return torch.allclose(got.float(), torch.tensor(expected, dtype=torch.float32), rtol=1e-4, atol=1e-5)


def _near(what: str, got: Sequence[float] | torch.Tensor, expected: Sequence[float], because: str, name: str) -> None:
    numbers = [float(g) for g in got]
    if not _same(torch.tensor(numbers), expected):
        raise Wrong(what, _said([name], [numbers]), _said([name], [expected]), because)


def _said(names: Sequence[str], lists: Sequence[Sequence[float]]) -> str:
    """`top [0]  total [16]  acc [136]`."""
    return "  ".join(
        f"{name} [{', '.join(f'{number:.5g}' for number in numbers)}]"
        for name, numbers in zip(names, lists, strict=True)
    )
