"""Lesson 6, check: tries any module with `update`, `attend` and `paged_attention`.

An answer that is wrong is compared with what the known misconceptions would have answered to the same question; where
it is one of those, the misconception is named. The oracle is the reference kernel in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from minipaged_kernels import reference

from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.traffic import Traffic
from lessons.runner.checks import Wrong

MISCONCEPTIONS = {
    "acc_not_rescaled": (
        "The sum was rescaled and the accumulator was not. Both are made of exp(score - m) with the old maximum; "
        "when m rises, both must shrink by exp(m - m'), or old keys count for too much."
    ),
    "nothing_rescaled": (
        "Nothing was rescaled. What was added up before was measured against the old maximum; next to numbers that"
        " are measured against the new one it is too large by exp(m' - m)."
    ),
    "averaged_softmaxes": (
        "Each block got a softmax of its own, and these were averaged. But a block whose scores are low deserves a"
        " small share of the whole, and in an average every block has the same."
    ),
    "block_maximum": (
        "The block's own maximum took the place of the running one. m may only rise: measured against a smaller m,"
        " what was seen before becomes exp of a large number, and overflows."
    ),
    "nan_at_the_start": (
        "At the start m is -inf, and a row may see nothing of its first block: then m - m' is -inf minus -inf, "
        "which is NaN and not 0, and NaN never goes away."
    ),
    "never_divided": (
        "The accumulator was not divided by the sum. While blocks are being read acc holds a sum of exp(score - m)"
        " * value; only acc / l, once, at the end, is an average."
    ),
    "not_scaled": (
        "The scores were not scaled. Without the factor (head_dim ** -0.5) they are too far apart, and one key "
        "takes nearly everything."
    ),
    "scaled_twice": (
        "The scores were scaled twice, say once in the query and once in the product: they come too close "
        "together, and every key gets nearly the same."
    ),
    "whole_last_block": (
        "The whole last block was attended to. Its slots beyond the context belong to no token yet; what lies in "
        "them is left over from somebody else."
    ),
    "masked_not_cut": (
        "Slots beyond the context were given the weight 0, and multiplied. They may hold NaN, and NaN * 0 is NaN: "
        "leave them out of the product instead."
    ),
    "table_ignored": (
        "The i-th block was read from place i of the pool. The i-th is its logical number; where it lies is what "
        "the block table says: table[i]."
    ),
    "physical_order": (
        "The blocks were read in the order in which they lie in the pool, not in that of the table. The last block"
        " of the table is the one that is partly filled; in another order the wrong one is cut."
    ),
    "heads_modulo": (
        "Query head h read KV head h % num_kv_heads. Heads that share a KV head are neighbours: it is h // "
        "(num_q_heads // num_kv_heads)."
    ),
    "causal_off_by_one": (
        "The causal mask is off by one. Row j of n new tokens, with a context of c, stands at position c - n + j, "
        "and sees the keys up to this one, its own included."
    ),
    "causal_from_zero": (
        "Row j saw the keys 0 to j, as if the new tokens were the first ones. There are c - n keys before them, "
        "computed in earlier steps, and row j sees those, too."
    ),
    "row_by_row": (
        "The numbers are right, and each block was read again for every row. All rows of a sequence need the same "
        "K and V: read a block once, and score all rows against it."
    ),
    "repeated_per_head": (
        "The numbers are right, and a block's keys and values were copied for each query head that shares them. Let "
        "these heads be rows instead, which are all compared with the one KV head: then nothing is copied."
    ),
    "gathered": (
        "The numbers are right, and the blocks were copied together first. The point is to do without: K and V are"
        " read where they lie, and no more than a block is ever in your hands."
    ),
}

_LONG_TABLE = (5, 2, 7, 0, 3, 8, 1, 6)
#: The causal mask can be off by one in two ways, a key too few and a key too many. It is one misconception.
ITS_OTHER_WAY = "causal_off_by_one, the other way"


# Task 1 --------------------------------------------------------------------------------------------------------------


def task_1(exercise: ModuleType) -> None:
    """`update`: the worked example, rows apart, a maximum that stays, nothing to be seen, and many random blocks."""
    zero, one, two = 0.0, math.log(2), math.log(4)
    running = _update(exercise, Running.start(1, 1, 1), [[[zero, one]]], [[[8.0], [2.0]]], "a first block")
    _expect_running(
        "scores 0 and log 2, values 8 and 2, as a first block", running, one, 1.5, 6.0,
        {"averaged_softmaxes": (one, 1.0, 4.0)},
    )  # fmt: skip
    running = _update(exercise, running, [[[two, zero]]], [[[4.0], [8.0]]], "a second block")
    _expect_running(
        "then log 4 and 0, values 4 and 8", running, two, 2.0, 9.0,
        {"acc_not_rescaled": (two, 2.0, 12.0), "nothing_rescaled": (two, 2.75, 12.0)},
    )  # fmt: skip
    running = _update(exercise, running, [[[zero, zero]]], [[[4.0], [0.0]]], "a third block")
    _expect_running(
        "then 0 and 0, values 4 and 0: m stays", running, two, 2.5, 10.0,
        {"block_maximum": (zero, 10.0, 40.0)},
    )  # fmt: skip

    start = Running.start(1, 1, 1)
    start_copy = Running(*(t.clone() for t in start))
    _update(exercise, start, [[[1.0]]], [[[1.0]]], "one key")
    for name, was, now in zip(Running._fields, start_copy, start, strict=True):
        if not torch.equal(was, now):
            raise Wrong(f"running.{name} after a call (make new tensors, do not change it)", _shown(now), _shown(was))

    unseen = [[[-math.inf, -math.inf]]]
    running = _update(exercise, Running.start(1, 1, 1), unseen, [[[1.0], [1.0]]], "nothing seen")
    _expect_running(
        "a first block of which a row sees nothing (scores -inf)", running, -math.inf, 0.0, 0.0, {}, "nan_at_the_start"
    )
    running = _update(exercise, running, [[[zero, zero]]], [[[4.0], [2.0]]], "after nothing")
    _expect_running("and then scores 0 and 0, values 4 and 2", running, 0.0, 2.0, 6.0, {}, "nan_at_the_start")
    running = _update(exercise, running, unseen, [[[1.0], [1.0]]], "nothing more")
    _expect_running("and then nothing again: all stays", running, 0.0, 2.0, 6.0, {}, "nan_at_the_start")

    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(3, 4, 32, generator=generator) * 5  # (heads, rows, keys)
    scores[:, :, 5] += 150.0  # exp(150) is no float32: only a maximum that never falls gets past this key
    values = torch.randn(3, 32, 7, generator=generator)  # (heads, keys, head_dim)
    running = Running.start(3, 4, 7)
    for first in range(0, 32, 5):  # the last block has two keys
        block = slice(first, min(first + 5, 32))
        running = _update(exercise, running, scores[:, :, block], values[:, block], "random blocks")
    weights = scores.double().softmax(dim=-1)
    oracle = weights @ values.double()
    _expect_tensor(
        "3 heads, 4 rows and 32 random keys in blocks of 5: acc / total, against a softmax of all at once",
        running.acc / running.total[..., None], oracle, {}, nan="block_maximum",
    )  # fmt: skip


def _update(exercise: ModuleType, running: Running, scores: Any, values: Any, what: str) -> Running:
    got = exercise.update(running, torch.as_tensor(scores), torch.as_tensor(values))
    if not isinstance(got, (tuple, list)) or len(got) != 3 or not all(isinstance(t, torch.Tensor) for t in got):
        raise Wrong(f"what update returns after {what}", _kind(got), "Running(maximum, total, acc), three tensors")
    for name, new, old in zip(Running._fields, got, running, strict=True):
        if new.shape != old.shape:
            raise Wrong(f"the shape of {name} after {what}", tuple(new.shape), tuple(old.shape))
    return Running(*got)


def _expect_running(
    what: str,
    got: Running,
    maximum: float,
    total: float,
    acc: float,
    suspects: dict[str, tuple[float, float, float]],
    nan: str = "",
) -> None:
    """Of one row with one number: m, l and acc are right; else whose mistake it is, if anybody's."""
    found, expected = [t.item() for t in got], [maximum, total, acc]

    def is_near(answer: Sequence[float]) -> bool:
        pairs = zip(found, answer, strict=True)
        return all(a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in pairs)

    if is_near(expected):
        return
    because = next((name for name, answer in suspects.items() if is_near(answer)), "")
    if any(map(math.isnan, found)):
        because = nan
    words = [f"m {a:.4f}, l {b:.4f}, acc {c:.4f}" for a, b, c in (found, expected)]
    raise Wrong(what, words[0], words[1], MISCONCEPTIONS.get(because, ""))


# Task 2 --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Question:
    """One sequence's attention."""

    query: torch.Tensor  # (new, num_q_heads, head_dim)
    kv_layer: torch.Tensor  # (num_blocks, 2, num_kv_heads, block_size, head_dim)
    table: list[int]
    context: int
    scale: float

    def oracle(
        self,
        *,
        table: Sequence[int] | None = None,
        context: int | None = None,
        scale: float | None = None,
        query: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The answer in float64; or that to another question."""
        asked = self.query if query is None else query
        return reference.paged_attention(
            asked, self.kv_layer, torch.tensor([list(table or self.table)]),
            torch.tensor([0, len(asked)]), torch.tensor([context or self.context]),
            self.scale if scale is None else scale, compute_dtype=torch.float64,
        )  # fmt: skip

    def suspects(self) -> dict[str, torch.Tensor]:
        """What the misconceptions would answer."""
        num_kv_heads, block_size = self.kv_layer.shape[2:4]
        group = self.query.shape[1] // num_kv_heads
        blocks = -(-self.context // block_size)
        in_use = self.table[:blocks]
        # The query heads in the order in which h % num_kv_heads is h // group, and back.
        dealt = torch.arange(self.query.shape[1]).view(group, num_kv_heads).t().flatten()
        found = {
            "not_scaled": self.oracle(scale=1.0),
            "scaled_twice": self.oracle(scale=self.scale**2),
            "table_ignored": self.oracle(table=range(blocks)),
            "physical_order": self.oracle(table=sorted(in_use)),
            "heads_modulo": self.oracle(query=self.query[:, dealt])[:, dealt.argsort()],
        }
        if len(self.query) == 1:
            found["whole_last_block"] = self.oracle(context=blocks * block_size)
            found["never_divided"] = self.oracle() * self._total()
        return found

    def _total(self) -> torch.Tensor:
        """The sum of exp(score - maximum) of a single query, (1, num_q_heads, 1)."""
        keys = self.kv_layer[self.table, 0].transpose(0, 1).flatten(1, 2)[:, : self.context].double()
        keys = keys.repeat_interleave(self.query.shape[1] // len(keys), dim=0)  # (num_q_heads, context, head_dim)
        scores = torch.einsum("qhd,hkd->qhk", self.query.double(), keys) * self.scale
        return torch.exp(scores - scores.amax(-1, keepdim=True)).sum(-1, keepdim=True)


def task_2(exercise: ModuleType) -> None:
    """`attend`: by hand; table, cut, scale, heads; NaN beyond the context; every length; no copy of the context."""
    # Blocks of two keys, one head, one number each. Keys are logarithms, so that their weights are 1, 2, 4 and 1.
    kv = torch.zeros(5, 2, 1, 2, 1)
    kv[3, :, 0, :, 0] = torch.tensor([[0.0, math.log(2)], [8.0, 2.0]])
    kv[1, :, 0, :, 0] = torch.tensor([[math.log(4), 0.0], [4.0, 8.0]])
    kv[0, :, 0, :, 0] = torch.tensor([[1.0, 1.0], [50.0, 60.0]])
    one = torch.ones(1, 1, 1)
    _attend(exercise, "the worked example, keys in blocks 3 and 1 of the pool", _Question(one, kv, [3, 1], 4, 1.0))
    _attend(exercise, "the same with a context of 3: the last slot is left over", _Question(one, kv, [3, 1], 3, 1.0))
    _attend(exercise, "with a scale of 0.5", _Question(one, kv, [3, 1], 4, 0.5))
    _attend(exercise, "a table that is longer than the context needs", _Question(one, kv, [3, 1, 4, 0], 4, 1.0))
    _attend(exercise, "a context of 1", _Question(one, kv, [3], 1, 1.0))

    kv = _random_pool(6)
    question = _Question(torch.randn(1, 6, 8, generator=_seeded(1)), kv, [5, 2, 7, 0], 14, 8**-0.5)
    _attend(exercise, "6 query heads on 2 KV heads, 14 keys in blocks of 4 of a random pool", question)

    poisoned = kv.clone()
    poisoned[0, :, :, 2:] = float("nan")
    poisoned[[1, 3, 4, 6, 8]] = float("nan")
    question = _Question(question.query, poisoned, question.table, 14, question.scale)
    _attend(exercise, "the same with NaN in every slot that is not of this context", question, nan="masked_not_cut")

    for context in range(1, 17):
        question = _Question(question.query, kv, [5, 2, 7, 0], context, question.scale)
        _attend(exercise, f"a context of {context} in blocks of 4", question)

    with Traffic(kv) as traffic:
        exercise.attend(question.query[0], kv, list(_LONG_TABLE), 32, question.scale)
    _expect_in_place("attend over 8 blocks", traffic, kv)


def _attend(exercise: ModuleType, what: str, question: _Question, nan: str = "") -> None:
    given = question.kv_layer.clone(), question.query[0].clone()
    got = exercise.attend(given[1], given[0], list(question.table), question.context, question.scale)
    _expect_unchanged(what, given[0], question.kv_layer)
    suspects = {name: answer[0] for name, answer in question.suspects().items()}
    _expect_tensor(what, got, question.oracle()[0], suspects, nan)


# Task 3 --------------------------------------------------------------------------------------------------------------


def task_3(exercise: ModuleType) -> None:
    """`paged_attention`: two rows by hand, chunks, a ragged step with NaN around it, dtype, and blocks read once."""
    kv = torch.zeros(4, 2, 1, 2, 1)
    kv[2, :, 0, :, 0] = torch.tensor([[0.0, math.log(2)], [8.0, 2.0]])
    kv[1, :, 0, :, 0] = torch.tensor([[math.log(4), 0.0], [4.0, 8.0]])
    two = torch.ones(2, 1, 1)
    _step(exercise, "2 new tokens, a context of 4: row 0 sees 3 keys, row 1 sees 4", [_Question(two, kv, [2, 1], 4, 1)])
    _step(exercise, "2 new tokens and none before: row 0 sees 1 key, row 1 sees 2", [_Question(two, kv, [2], 2, 1)])

    kv = _random_pool(6)

    def question(seed: int, new: int, table: list[int], context: int) -> _Question:
        return _Question(torch.randn(new, 6, 8, generator=_seeded(seed)), kv, table, context, 8**-0.5)

    _step(exercise, "a chunk of 5 tokens that ends a context of 14", [question(1, 5, [5, 2, 7, 0], 14)])
    several = [question(2, 1, [3], 4), question(3, 7, [6, 1], 7), question(4, 2, [5, 2, 7, 0], 13)]
    _step(exercise, "three sequences with 1, 7 and 2 new tokens", several)

    poisoned = torch.full_like(kv, float("nan"))
    for asked in several:
        for position in range(asked.context):
            place = asked.table[position // 4], slice(None), slice(None), position % 4
            poisoned[place] = kv[place]
    several = [_Question(asked.query, poisoned, asked.table, asked.context, asked.scale) for asked in several]
    _step(exercise, "the same with NaN in every slot that is nobody's", several, nan="masked_not_cut")

    query = torch.randn(12, 6, 8, generator=_seeded(5))
    arguments = (torch.tensor([[5, 2, 7, 0]]), torch.tensor([0, 12]), torch.tensor([16]), 8**-0.5)
    with Traffic(kv) as traffic:
        exercise.paged_attention(query, kv, *arguments)
    context_bytes = 4 * kv[0].nbytes
    if traffic.pool_read_bytes > 2 * context_bytes:
        raise Wrong(
            f"bytes read from the pool for 12 new tokens over 16 keys, whose K and V are {context_bytes:,} bytes",
            f"{traffic.pool_read_bytes:,}", f"{context_bytes:,}", MISCONCEPTIONS["row_by_row"],
        )  # fmt: skip
    arguments = (torch.tensor([_LONG_TABLE]), torch.tensor([0, 12]), torch.tensor([32]), 8**-0.5)
    with Traffic(kv) as traffic:
        exercise.paged_attention(query, kv, *arguments)
    _expect_in_place("paged_attention over 8 blocks", traffic, kv)


def _step(exercise: ModuleType, what: str, questions: list[_Question], nan: str = "") -> None:
    """Several sequences in one call; what would be answered otherwise is computed for each, row by row."""
    kv = questions[0].kv_layer
    width = max(len(question.table) for question in questions)
    tables = torch.zeros(len(questions), width, dtype=torch.int32)
    for i, question in enumerate(questions):
        tables[i, : len(question.table)] = torch.tensor(question.table)
    lengths = torch.tensor([0, *(len(question.query) for question in questions)])
    query, given = torch.cat([question.query for question in questions]), kv.clone()
    contexts = torch.tensor([question.context for question in questions], dtype=torch.int32)
    starts = lengths.cumsum(0).to(torch.int32)
    got = exercise.paged_attention(query.clone(), given, tables, starts, contexts, questions[0].scale)
    _expect_unchanged(what, given, kv)

    suspects: dict[str, list[torch.Tensor]] = {}
    for question in questions:
        new, before = len(question.query), question.context - len(question.query)
        answers = question.suspects() if new > 1 else {}
        # Row j sees before + j + shift keys; the right shift is 1.
        for name, shift in (("causal_off_by_one", 0), (ITS_OTHER_WAY, 2), ("causal_from_zero", 1 - before)):
            rows = [
                question.oracle(
                    query=question.query[j : j + 1], context=min(max(before + j + shift, 1), question.context)
                )
                for j in range(new)
            ]
            answers[name] = torch.cat(rows)
            if before + shift < 1:
                answers[name][: 1 - shift - before] = float("nan")  # a softmax of nothing
        for name, answer in answers.items():
            suspects.setdefault(name, []).append(answer)
    whole = {name: torch.cat(parts) for name, parts in suspects.items() if len(parts) == len(questions)}
    _expect_tensor(what, got, torch.cat([question.oracle() for question in questions]), whole, nan)


# Both ----------------------------------------------------------------------------------------------------------------


def _expect_tensor(
    what: str, got: Any, expected: torch.Tensor, suspects: dict[str, torch.Tensor], nan: str = ""
) -> None:
    """`got` is `expected` (float64) to 2e-5; else it is named after the suspect whose answer it is."""
    if not isinstance(got, torch.Tensor):
        raise Wrong(what, _kind(got), f"a tensor {tuple(expected.shape)}")
    if got.shape != expected.shape:
        raise Wrong(f"{what}: the shape", tuple(got.shape), tuple(expected.shape))
    if got.dtype != torch.float32:
        raise Wrong(f"{what}: the dtype", got.dtype, "torch.float32, the query's")

    def is_near(answer: torch.Tensor) -> bool:
        return torch.allclose(got.detach().cpu().double(), answer, rtol=2e-5, atol=2e-5, equal_nan=True)

    if is_near(expected):
        return
    known = (name for name, answer in suspects.items() if not torch.equal(answer, expected) and is_near(answer))
    because = nan if nan and got.isnan().any() else next(known, "")
    if because == ITS_OTHER_WAY:
        because = "causal_off_by_one"
    differ = ~torch.isclose(got.detach().cpu().double(), expected, rtol=2e-5, atol=2e-5)
    first = int(differ.flatten().nonzero()[0])
    raise Wrong(what, _shown(got, first), _shown(expected, first), MISCONCEPTIONS.get(because, ""))


def _expect_unchanged(what: str, now: torch.Tensor, before: torch.Tensor) -> None:
    if not torch.equal(now.nan_to_num(), before.nan_to_num()):
        raise Wrong(f"{what}: the pool afterwards", "K and V were changed", "attention only reads them")


def _expect_in_place(what: str, traffic: Traffic, kv: torch.Tensor) -> None:
    """No copy of K and V was larger than a block. In numbers: who takes a block to float64 copies no second one."""
    if traffic.largest_copy_numbers > kv[0].numel():
        # Three query heads share a KV head in what is asked here. The keys alone of 8 blocks are more than 3 blocks.
        why = "repeated_per_head" if traffic.largest_copy_numbers <= 3 * kv[0].numel() else "gathered"
        raise Wrong(
            f"{what}: the largest copy of K and V, where a block has {kv[0].numel():,} numbers",
            f"{traffic.largest_copy_numbers:,} numbers", "at most a block", MISCONCEPTIONS[why],
        )  # fmt: skip


def _random_pool(seed: int) -> torch.Tensor:
    """Nine blocks of four keys, two KV heads of eight numbers."""
    return torch.randn(9, 2, 2, 4, 8, generator=_seeded(seed))


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _kind(got: Any) -> str:
    return f"{type(got).__name__}" + (f" of {len(got)}" if isinstance(got, (tuple, list)) else "")


def _shown(tensor: torch.Tensor, first: int = 0) -> str:
    """A few numbers of a tensor, from one on."""
    numbers = " ".join(f"{x:.4g}" for x in tensor.flatten()[first : first + 6].tolist())
    return numbers if tensor.numel() <= 6 else f"{numbers} … (from number {first} of {tensor.numel()})"
