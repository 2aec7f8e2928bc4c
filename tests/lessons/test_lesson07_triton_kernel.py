"""Lesson 7: what it counts is what is loaded, the ladder's kernels agree, and what it says of machine code is so.

In Triton's interpreter, or on a GPU where there is one.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from minipaged_kernels import backends, reference
from rich.console import Console

from lessons.lesson07_triton_kernel import LESSON, compiled, counting, exercise, solution
from lessons.lesson07_triton_kernel.__main__ import main
from lessons.lesson07_triton_kernel.counting import Setting
from lessons.lesson07_triton_kernel.language import INTERPRETED, MISSING, device, refuse_stub
from lessons.lesson07_triton_kernel.request import check_decode
from lessons.runner.grading import grade
from minipaged.cli.kernel_problems import TOLERANCE, make
from minipaged.parts import Parts
from minipaged.viz.theme import Theme

ROOT = Path(__file__).parents[2]
needs_triton = pytest.mark.skipif(MISSING is not None, reason="Triton is not installed")

REST = backends.choose("reference" if device() == "cpu" else "auto", device())

SETTINGS = [
    Setting(contexts=(1,), heads=1, kv_heads=1, head_dim=16, splits=2),
    Setting(contexts=(16, 17, 1), heads=4, kv_heads=2, head_dim=16, tile=16, splits=8),
    Setting(contexts=(31, 40), heads=8, kv_heads=1, head_dim=32, block_size=8, tile=32, splits=2),
    Setting(contexts=(130,), heads=3, kv_heads=3, head_dim=64, block_size=64, tile=16, splits=4),
]


def problem_of(step: Setting, dtype: torch.dtype = torch.float32) -> Any:
    mix = tuple((1, context) for context in step.contexts)
    return make((step.heads, step.kv_heads), step.head_dim, step.block_size, mix, dtype, seed=3)


# Counting ------------------------------------------------------------------------------------------------------------


@needs_triton
@pytest.mark.parametrize("step", SETTINGS, ids=lambda step: "-".join(map(str, step.contexts)))
def test_every_rung_counts_what_is_reckoned_and_agrees_with_the_one_before(step: Setting) -> None:
    from lessons.lesson07_triton_kernel import experiment

    rungs = experiment.climb(step, solution)
    assert [rung.name for rung in rungs] == ["naive", "tiled", "grouped", "split"]
    for rung in rungs:
        assert rung.counted_bytes == rung.cost.read_bytes, rung.name
        assert rung.counted_programs == rung.cost.programs, rung.name
        assert rung.difference is not None and rung.difference <= experiment.tolerance(), rung.name
    reads = [rung.counted_bytes / step.held_bytes for rung in rungs if rung.counted_bytes]
    assert reads == [1.5 * step.group, step.group, 1, 1]


@contextmanager
def watched(tensor: torch.Tensor) -> Iterator[list[int]]:
    """Counts what the interpreter itself loads from a tensor's memory: an account that no kernel keeps."""
    from triton.runtime.interpreter import interpreter_builder as builder

    base = tensor.untyped_storage().data_ptr()
    end = base + tensor.untyped_storage().nbytes()
    seen = [0]
    original = builder.create_masked_load

    def load(pointers: Any, mask: Any, *rest: Any, **options: Any) -> Any:
        inside = (pointers.data >= base) & (pointers.data < end)
        seen[0] += int(np.count_nonzero(inside & mask.data))
        return original(pointers, mask, *rest, **options)

    builder.create_masked_load = load
    try:
        yield seen
    finally:
        del builder.create_masked_load


@needs_triton
@pytest.mark.skipif(not INTERPRETED, reason="only the interpreter can be watched")
@pytest.mark.parametrize("step", SETTINGS[1:3], ids=lambda step: "-".join(map(str, step.contexts)))
def test_the_interpreter_sees_the_same_loads(step: Setting) -> None:
    from lessons.lesson07_triton_kernel import experiment

    problem = problem_of(step)
    costs = [counting.naive(step), counting.tiled(step), counting.grouped(step), counting.split(step)]
    for (name, kernel), cost in zip(experiment.kernels(step, solution).items(), costs, strict=True):
        with watched(problem.kv_layer) as seen:
            kernel(problem.query, problem.kv_layer, problem.block_tables, problem.context_lens, problem.scale)
        assert seen[0] * 4 == cost.read_bytes, name


@needs_triton
@pytest.mark.skipif(not INTERPRETED, reason="only the interpreter can be watched")
@pytest.mark.parametrize("mix", [((1, 40), (9, 9), (3, 35)), ((17, 50),), ((1, 1), (1, 33))])
def test_what_is_reckoned_of_the_engine_s_kernel_is_what_it_loads(mix: Any) -> None:
    from minipaged_kernels import triton_attention

    heads, kv_heads, head_dim = 4, 2, 16
    problem = make((heads, kv_heads), head_dim, 16, mix, torch.float32)
    rows = triton_attention.choose(torch.float32, head_dim, 1.0).block_m
    cost = counting.ragged(mix, heads // kv_heads, rows)
    with watched(problem.kv_layer) as seen:
        problem.solve(lambda *a: triton_attention.paged_attention(*a, splits=1), "cpu")
    assert seen[0] == 2 * sum(cost.keys_read) * kv_heads * head_dim
    assert cost.busy <= cost.launched


@needs_triton
def test_the_rows_that_the_lesson_names_are_those_of_the_engine_s_kernel() -> None:
    from minipaged_kernels import triton_attention

    from lessons.lesson07_triton_kernel import experiment

    assert triton_attention.choose(torch.float32, 32, 1000.0).block_m == experiment.RAGGED_ROWS
    found = experiment.ragged()
    assert found.difference is not None and found.difference <= experiment.tolerance()


@pytest.mark.parametrize("context", [1, 31, 32, 33, 300])
@pytest.mark.parametrize("splits", [1, 2, 4, 16])
def test_the_splits_of_a_context_have_every_tile_once(context: int, splits: int) -> None:
    step = Setting(contexts=(context,), splits=splits)
    walked = [tile for split in range(splits) for tile in step.tiles_of_split(context, split)]
    assert walked == list(range(step.tiles(context)))


def test_fewer_kv_heads_hold_less_and_the_naive_kernel_reads_as_much() -> None:
    costs = [counting.naive(Setting(contexts=(100,), kv_heads=n)).read_bytes for n in (8, 4, 2, 1)]
    assert len(set(costs)) == 1
    held = [Setting(contexts=(100,), kv_heads=n).held_bytes for n in (8, 4, 2, 1)]
    assert held == [held[0], held[0] // 2, held[0] // 4, held[0] // 8]


# The kernels ---------------------------------------------------------------------------------------------------------


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rungs_against_the_oracle_where_nan_lies_around(dtype: torch.dtype) -> None:
    from lessons.lesson07_triton_kernel import experiment

    step = Setting(contexts=(5, 70, 32), heads=6, kv_heads=2, head_dim=16, block_size=8, splits=4)
    problem = problem_of(step, dtype)
    for name, kernel in experiment.kernels(step, solution).items():
        tensors = (problem.query, problem.kv_layer, problem.block_tables, problem.context_lens)
        answer = kernel(*(tensor.to(device()) for tensor in tensors), problem.scale).cpu()
        assert problem.error(answer) <= TOLERANCE[dtype], name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": torch.bfloat16}, "float32 or float16"),
        ({"heads": 3}, "not a multiple"),
        ({"heads": 34}, "16 at most"),
        ({"head_dim": 48}, "powers of two"),
        ({"head_dim": 8}, "16 or more"),
        ({"block_size": 12}, "powers of two"),
        ({"contexts": 3}, "one of each"),
    ],
)
def test_what_the_kernels_cannot_do_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"dtype": torch.float32, "heads": 4, "head_dim": 16, "block_size": 16, "contexts": 2}
    asked = SimpleNamespace(**(sizes | change))
    query = torch.zeros(2, asked.heads, asked.head_dim, dtype=asked.dtype)
    kv_layer = torch.zeros(3, 2, 2, asked.block_size, asked.head_dim, dtype=asked.dtype)
    with pytest.raises(ValueError, match=message) as refused:
        check_decode(query, kv_layer, torch.zeros(2, 1), torch.ones(asked.contexts))
    assert "\n" not in str(refused.value)


# The exercise --------------------------------------------------------------------------------------------------------


@needs_triton
def test_a_stub_says_what_is_to_be_done_before_triton_sees_it() -> None:
    from lessons.lesson07_triton_kernel.decode_kernel import decode_attention, merge_parts

    step = SETTINGS[0]
    problem = problem_of(step)
    tensors = (problem.query, problem.kv_layer, problem.block_tables, problem.context_lens, problem.scale)
    with pytest.raises(NotImplementedError, match="lesson 7, task 1: "):
        decode_attention(*tensors, tile_loop=exercise.tile_loop)
    parts = (torch.zeros(1, 1, 2), torch.ones(1, 1, 2), torch.zeros(1, 1, 2, 16))
    with pytest.raises(NotImplementedError, match="lesson 7, task 2: "):
        merge_parts(*parts, merge_splits=exercise.merge_splits)


@needs_triton
def test_a_function_without_jit_is_told_so() -> None:
    with pytest.raises(TypeError, match="put @jit above it"):
        refuse_stub(lambda: None)


def answer_of(tmp_path: Path, source: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    path = tmp_path / "lesson07_triton_kernel.py"
    path.write_text(source)
    spec = spec_from_file_location("workbook_lesson07", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_triton
@pytest.mark.skipif(not INTERPRETED, reason="the compiler has its own words")
def test_an_error_in_a_learner_s_kernel_is_shown_bare_with_its_line(tmp_path: Path) -> None:
    source = Path(solution.__file__).read_text().replace("new_top = tl.maximum(", "new_top = tl.maxinum(")
    found = grade(LESSON, answer_of(tmp_path, source), 1)
    assert found.standing == "broken"
    assert found.got.startswith("AttributeError") and "tl.maxinum(" in found.got.splitlines()[1]


@needs_triton
def test_loads_that_are_not_counted_are_asked_for(tmp_path: Path) -> None:
    source = Path(solution.__file__).read_text()
    source = source.replace("inside[:, None], counter)", "mask=inside[:, None], other=0.0)")
    found = grade(LESSON, answer_of(tmp_path, source.replace("= load_kv(", "= tl.load(")), 1)
    assert (found.standing, found.got, found.expected) == ("wrong", "0", "2048")
    assert "load_kv" in found.what


def test_without_triton_the_lesson_is_reckoned_and_says_what_it_needs() -> None:
    program = (
        "import sys; sys.modules['triton'] = None\n"
        "from lessons.lesson07_triton_kernel import LESSON, exercise, solution\n"
        "from lessons.lesson07_triton_kernel.__main__ import main\n"
        "from lessons.runner.grading import grades\n"
        "print([(g.standing, g.got) for g in grades(LESSON, solution)], file=sys.stderr)\n"
        "main(['--json'])\n"
        "sys.exit(main(['--small', '--no-ask']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pip install triton") == 2  # one line for each task
    figures, end = json.JSONDecoder().raw_decode(done.stdout)
    assert figures["triton"] is None and figures["machine_code"] == []
    assert [rung["cost"]["programs"] for rung in figures["rungs"]] == [16, 16, 4, 16]
    assert all(rung["counted_bytes"] is None for rung in figures["rungs"])
    assert "pip install triton" in " ".join(done.stdout[end:].split())
    assert "yours" not in done.stdout[end:]


# In the engine -------------------------------------------------------------------------------------------------------


@needs_triton
def test_the_plug_computes_decodes_and_leaves_prompts_to_the_rest() -> None:
    from lessons.lesson07_triton_kernel.plug import TritonDecode

    problem = make((4, 2), 16, 16, ((1, 40), (5, 9), (1, 1), (1, 17)), torch.float32)
    attention = TritonDecode(solution, REST)
    answer = problem.solve(attention.paged_attention, device())
    assert problem.error(answer) <= TOLERANCE[torch.float32]
    assert attention.num_rows == 3


@needs_triton
def test_the_plug_steps_back_where_the_kernel_cannot_and_where_its_rows_are_used_up() -> None:
    from lessons.lesson07_triton_kernel.plug import TritonDecode

    for head_dim, dtype, rows in ((80, torch.float32, None), (32, torch.bfloat16, None), (32, torch.float32, 1)):
        problem = make((4, 2), head_dim, 16, ((1, 40), (1, 9)), dtype)
        attention = TritonDecode(solution, REST, rows)
        assert problem.error(problem.solve(attention.paged_attention, device())) <= TOLERANCE[dtype]
        assert attention.num_rows == 0


@needs_triton
def test_the_engine_draws_the_same_tokens_with_the_plug() -> None:
    from lessons.lesson07_triton_kernel.experiment import generate
    from lessons.lesson07_triton_kernel.plug import TritonDecode, plug

    parts = plug(Parts(attention=reference), solution) if device() == "cpu" else plug(Parts(), solution)
    tokens = generate(parts, small=True, on=device())
    assert tokens == generate(Parts(), small=True, on=device())
    assert isinstance(parts.attention, TritonDecode)
    assert parts.attention.num_rows == (len(tokens) - 1) * 4  # the first token is the prompt's; 4 layers


# Machine code --------------------------------------------------------------------------------------------------------


def test_opcodes_are_counted_by_whole_words_and_loads_by_width() -> None:
    opcodes = {
        "LDG.E": 2,
        "LDG.E.128": 3,
        "LDG.E.U16": 1,
        "LDGSTS.E.BYPASS.128": 4,
        "LDGDEPBAR": 5,
        "HMMA.16816.F32": 6,
    }
    code = compiled.MachineCode("k", "sm_80", 1, 0, 0, 0, opcodes)
    assert code.count("LDG") == 6
    assert code.loads_by_bytes == {2: 1, 4: 2, 16: 7}
    assert code.matrix_instructions == 6


@pytest.mark.skipif(not compiled.possible(), reason="compiling without a GPU needs Triton 3.6")
def test_what_the_lesson_says_of_machine_code_is_so() -> None:
    codes = {code.kernel: code for code in compiled.finish(compiled.start("sm_80"))}
    assert set(codes) == {"naive", "tiled", "grouped", "split", "its merge"}
    assert all(code.stack_bytes == code.local_bytes == 0 for code in codes.values())
    for name in ("naive", "tiled"):
        assert codes[name].matrix_instructions == 0 and codes[name].count("FFMA") > 16
    for name in ("grouped", "split"):
        assert codes[name].matrix_instructions > 0
        assert codes[name].count("SHFL") < codes["tiled"].count("SHFL")
        assert codes[name].count("LDGSTS") > 0  # tiles are fetched ahead into shared memory
        assert codes[name].shared_bytes > codes["tiled"].shared_bytes


@pytest.mark.skipif(not compiled.possible(), reason="compiling without a GPU needs Triton 3.6")
def test_a_failed_compilation_is_one_line() -> None:
    with pytest.raises(ValueError, match="did not compile") as failed:
        compiled.finish(compiled.start("sm_none", "its merge"))
    assert "\n" not in str(failed.value)


# What is shown -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unicode", [True, False])
def test_the_picture_has_every_tile_as_often_as_it_is_read(unicode: bool) -> None:
    from lessons.lesson07_triton_kernel.grid_picture import grid_picture

    step = replace(SETTINGS[1], contexts=(50, 20), splits=4)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(grid_picture(step, Theme(unicode, "none")))
    first, second = console.export_text().split("\n\n")
    tiles = sum(step.tiles(context) for context in step.contexts)

    def walked(part: str) -> int:
        """Cells behind "query head 3" or "query heads 0-1"."""
        lines = [line.split("query head", 1)[1].split() for line in part.splitlines() if "query head" in line[20:]]
        return sum(len(words[1] if words[0] != "s" else words[2]) for words in lines if len(words) > 1)

    assert walked(first.split("\n", 1)[1]) == tiles * step.heads
    assert walked(second.split("\n", 1)[1]) == tiles * step.kv_heads


@needs_triton
def test_the_play_keeps_score_and_its_figures_are_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["tokens_equal"] is True
    assert [rung["counted_bytes"] / figures["held_bytes"] for rung in figures["rungs"]] == [6, 4, 1, 1]
    assert [shared["counted_bytes"] for shared in figures["sharing"]] == [
        shared["read_bytes"] for shared in figures["sharing"]
    ]


def test_cuda_is_refused_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert main(["--small", "--no-ask", "--device", "cuda"]) == 2
    assert "no CUDA device" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_ladder_is_timed_on_a_gpu() -> None:
    from lessons.lesson07_triton_kernel.timing import time_ladder

    timings = time_ladder(solution, small=True)
    assert [timing.kernel for timing in timings] == ["copy", "naive", "tiled", "grouped", "split", "engine"]
    assert all(timing.milliseconds > 0 for timing in timings)
