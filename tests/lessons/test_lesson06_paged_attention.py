"""Lesson 6: the gather is right and makes three passes, the online softmax one, and `Traffic` counts as it says."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from rich.console import Console

from lessons.lesson06_paged_attention import LESSON, solution
from lessons.lesson06_paged_attention.__main__ import main
from lessons.lesson06_paged_attention.check import MISCONCEPTIONS
from lessons.lesson06_paged_attention.experiment import BLOCK_SIZE, HEAD_DIM, HEADS, PROMPTS, Batch, measure, walk
from lessons.lesson06_paged_attention.gather_attention import GatherAttention
from lessons.lesson06_paged_attention.picture import WIDTH, picture
from lessons.lesson06_paged_attention.plug import plug
from lessons.lesson06_paged_attention.running import Running
from lessons.lesson06_paged_attention.traffic import Traffic
from lessons.runner.grading import grades
from minipaged import LLM, SamplingParams
from minipaged.cli import kernel_problems
from minipaged.parts import Parts
from minipaged.viz.theme import Theme

ATTENTIONS = [GatherAttention().paged_attention, solution.paged_attention]


# Right answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ATTENTIONS, ids=["gather", "online"])
@pytest.mark.parametrize("heads", [(8, 8), (8, 1), (12, 4)])
@pytest.mark.parametrize("mix", range(4))
def test_both_agree_with_the_oracle(attention: Callable[..., torch.Tensor], heads: tuple[int, int], mix: int) -> None:
    """Ragged mixes of decodes and prefills, in which all that is nobody's holds NaN."""
    for block_size in (8, 32):
        problem = kernel_problems.make(heads, 40, block_size, kernel_problems.MIXES[mix], torch.float32, seed=mix)
        assert problem.error(problem.solve(attention, "cpu")) < kernel_problems.TOLERANCE[torch.float32]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_online_softmax_of_a_rounded_cache(dtype: torch.dtype) -> None:
    problem = kernel_problems.make((12, 4), 64, 16, kernel_problems.MIXES[0], dtype)
    answer = problem.solve(solution.paged_attention, "cpu")
    assert answer.dtype == dtype
    assert problem.error(answer) < kernel_problems.TOLERANCE[dtype]


def test_scores_far_apart_do_not_overflow() -> None:
    """A thousand between two blocks, in both directions: exp of it is neither finite nor different from 0."""
    for scores, expected in (([0.0, 1000.0], 7.0), ([1000.0, 0.0], 3.0), ([-1000.0, -1000.0], 5.0)):
        running = Running.start(1, 1, 1)
        for score, value in zip(scores, (3.0, 7.0), strict=True):
            running = solution.update(running, torch.tensor([[[score]]]), torch.tensor([[[value]]]))
        assert (running.acc / running.total[..., None]).item() == expected


def test_the_order_of_blocks_does_not_matter_to_a_sum() -> None:
    """What the README says of order: whole blocks, one query, any order, the same answer but for rounding."""
    batch = Batch.make(1, 128, "cpu")
    there, back = batch.block_tables[0].tolist(), batch.block_tables[0].tolist()[::-1]
    a, b = (solution.attend(batch.query[0], batch.kv_layer, t, 128, HEAD_DIM**-0.5) for t in (there, back))
    assert torch.allclose(a, b, atol=1e-6)
    a, b = (solution.attend(batch.query[0], batch.kv_layer, t, 120, HEAD_DIM**-0.5) for t in (there, back))
    assert not torch.allclose(a, b, atol=1e-3)  # another block is cut


# Bytes ---------------------------------------------------------------------------------------------------------------


def test_three_passes_against_one_to_the_byte() -> None:
    batch = Batch.make(3, 64, "cpu")
    one_pass = 3 * 64 * 2 * HEADS * HEAD_DIM * 4
    assert batch.kv_bytes == one_pass
    ways = [("gather", GatherAttention().paged_attention, True), ("online", solution.paged_attention, True)]
    (gather, online), _ = measure(ways, batch)
    assert (gather.pool_read_bytes, gather.copy_written_bytes, gather.copy_read_bytes) == (one_pass,) * 3
    assert gather.scratch_bytes == one_pass
    assert (online.moved_bytes, online.pool_read_bytes, online.scratch_bytes) == (one_pass, one_pass, 0)
    for way in (gather, online):
        assert way.largest_error < 2e-5


def test_a_partly_filled_block_is_gathered_whole_and_read_in_part() -> None:
    """The gather copies 4 blocks of 16 for 50 keys; read in place, only the 50 are touched."""
    batch = Batch.make(1, 64, "cpu")
    contexts = torch.tensor([50], dtype=torch.int32)
    per_key = 2 * HEADS * HEAD_DIM * 4
    arguments = (batch.query, batch.kv_layer, batch.block_tables, batch.query_starts, contexts, 1.0)
    with Traffic(batch.kv_layer) as gathered:
        GatherAttention().paged_attention(*arguments)
    with Traffic(batch.kv_layer) as in_place:
        solution.paged_attention(*arguments)
    assert gathered.pool_read_bytes == gathered.copy_written_bytes == 4 * BLOCK_SIZE * per_key
    assert gathered.copy_read_bytes == 50 * per_key
    assert in_place.total_bytes == in_place.pool_read_bytes == 50 * per_key


def test_a_prefill_reads_each_block_once_for_all_rows() -> None:
    batch = Batch.make(1, 64, "cpu")
    query = torch.randn(40, HEADS, HEAD_DIM)
    starts = torch.tensor([0, 40])
    with Traffic(batch.kv_layer) as traffic:
        solution.paged_attention(query, batch.kv_layer, batch.block_tables, starts, batch.context_lens, 1.0)
    assert traffic.total_bytes == batch.kv_bytes


def test_traffic_counts_what_an_operation_reads_and_moves() -> None:
    pool = torch.zeros(10, 4)  # 160 bytes, 16 a row
    with Traffic(pool) as traffic:
        view = pool[2:4].t()
        assert (traffic.total_bytes, traffic.largest_copy_bytes) == (0, 0)  # a view reads nothing
        pool.new_empty(1000), torch.empty_like(pool)
        assert traffic.total_bytes == 0  # nor does a look at its shape
        view.sum()
        assert traffic.pool_read_bytes == 32
        copy = pool[torch.tensor([7, 1, 1])]
        assert (traffic.pool_read_bytes, traffic.copy_written_bytes) == (32 + 48, 48)  # what is taken, not all 160
        again = copy[1:].clone()
        assert (traffic.copy_read_bytes, traffic.copy_written_bytes) == (32, 48 + 32)
        again.sum()
        torch.ones(1000).sum()  # not K and V
        assert traffic.copy_read_bytes == 64
        into = torch.empty(4)
        into.copy_(pool[0])
        assert (traffic.pool_read_bytes, traffic.copy_written_bytes) == (80 + 16, 80 + 16)
        pool[0].expand(5, 4).sum()
        assert traffic.pool_read_bytes == 96 + 16  # the same bytes five times over
    assert traffic.largest_copy_bytes == 48


def test_the_gather_keeps_its_scratch() -> None:
    """Its memory is as large as the largest call; a smaller one does not make it anew."""
    gather = GatherAttention()
    Batch.make(4, 64, "cpu").attend(gather.paged_attention)
    place = gather._scratch.data_ptr()
    Batch.make(2, 32, "cpu").attend(gather.paged_attention)
    assert gather._scratch.data_ptr() == place
    assert gather._scratch.numel() == 4 * 64 * 2 * HEADS * HEAD_DIM


# What is shown -------------------------------------------------------------------------------------------------------


def test_the_walk_is_a_softmax() -> None:
    seen = walk(solution.update)
    assert seen.result == pytest.approx(seen.at_once, abs=1e-6)
    maxima = [turn.maximum for turn in seen.turns]
    assert maxima == sorted(maxima)
    rises = [turn for turn in seen.turns[1:] if turn.rescale < 1]
    assert len(rises) >= 2  # else the picture would show no rescaling
    assert all(0 < turn.rescale < 1 for turn in rises)
    physical = [turn.physical for turn in seen.turns]
    assert physical != sorted(physical)
    assert [turn.keys for turn in seen.turns] == [4, 4, 4, 4, 4, 2]


@pytest.mark.parametrize("theme", [Theme(), Theme(unicode=False, colors="none")])
def test_the_picture_shows_the_order_and_fits(theme: Theme) -> None:
    seen = walk(solution.update)
    console = Console(file=io.StringIO(), width=80)
    drawn = picture(seen, theme)
    console.print(drawn)
    assert all(line.cell_len <= WIDTH for line in drawn.lines)
    for number, turn in enumerate(seen.turns, 1):
        assert f"{turn.physical:3d}[{number}]" in drawn.plain
    if not theme.unicode:
        assert drawn.plain.isascii()


def test_the_worked_example_of_the_readme() -> None:
    running = Running.start(1, 1, 1)
    for scores, values, expected in (
        ((0.0, math.log(2)), (8.0, 2.0), (math.log(2), 1.5, 6.0)),
        ((math.log(4), 0.0), (4.0, 8.0), (math.log(4), 2.0, 9.0)),
    ):
        running = solution.update(running, torch.tensor([[scores]]), torch.tensor([values])[..., None])
        assert [t.item() for t in running] == pytest.approx(expected)


# The engine and the command line -------------------------------------------------------------------------------------


def test_the_engine_runs_on_it_in_debug_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN in freed blocks, a pool too small for all at once, chunks of five: the tokens stay those of our kernel."""
    monkeypatch.setenv("MINIPAGED_DEBUG", "1")
    params = SamplingParams(temperature=0, max_tokens=12)
    options = {"num_blocks": 14, "block_size": 4, "max_chunk_tokens": 5}
    calls = []

    def counted(*args: torch.Tensor) -> torch.Tensor:
        calls.append(len(args[0]))
        return solution.paged_attention(*args)  # type: ignore[arg-type]

    exercise = ModuleType("exercise")
    exercise.paged_attention = counted  # type: ignore[attr-defined]
    answers = [
        [output.outputs[0].token_ids for output in LLM("tiny-gpt", parts=parts, **options).generate(PROMPTS, params)]
        for parts in (plug(Parts(), exercise), Parts())
    ]
    assert answers[0] == answers[1]
    assert max(calls) > 1  # there were prefills


def test_small_run_gives_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["kv_bytes"] == figures["sequences"] * figures["context"] * 2 * HEADS * HEAD_DIM * 4
    moved = {
        name: sum(figures[name][f"{part}_bytes"] for part in ("pool_read", "copy_written", "copy_read"))
        for name in ("gather", "online", "kernel")
    }
    assert moved["gather"] == 3 * moved["online"] == 3 * moved["kernel"] == 3 * figures["kv_bytes"]
    for name in ("gather", "online", "kernel"):
        assert figures[name]["largest_error"] < 2e-5  # one class: a few steps of float32
    assert figures["served"]["equal_tokens"] == figures["served"]["tokens"] > 0


def test_an_unknown_mistake_is_shown_without_a_false_name() -> None:
    """The check accuses nobody of a misconception whose answer it does not recognise."""
    exercise = ModuleType("exercise")
    exercise.update = solution.update  # type: ignore[attr-defined]
    exercise.attend = lambda query, *rest: solution.attend(query, *rest) + 0.1  # type: ignore[attr-defined]
    exercise.paged_attention = lambda *args: solution.paged_attention(*args).tolist()  # type: ignore[attr-defined]
    first, second, third = grades(LESSON, exercise)
    assert first.passed
    assert (second.standing, second.because) == ("wrong", "")
    assert (third.standing, third.because) == ("wrong", "")
    assert "list" in third.got
    assert second.because not in MISCONCEPTIONS.values()


def test_an_answer_that_changes_what_it_was_given() -> None:
    exercise = ModuleType("exercise")

    def update(running: Running, scores: torch.Tensor, values: torch.Tensor) -> Running:
        new = solution.update(running, scores, values)
        running.total.add_(1)
        return new

    def attend(query: torch.Tensor, kv_layer: torch.Tensor, *rest: object) -> torch.Tensor:
        out = solution.attend(query, kv_layer, *rest)  # type: ignore[arg-type]
        kv_layer[0].zero_()
        return out

    exercise.update, exercise.attend = update, attend  # type: ignore[attr-defined]
    exercise.paged_attention = solution.paged_attention  # type: ignore[attr-defined]
    first, second, third = grades(LESSON, exercise)
    assert (first.standing, second.standing, third.standing) == ("wrong", "wrong", "passed")
    assert "total" in first.what and "do not change" in first.what
    assert "changed" in second.got
