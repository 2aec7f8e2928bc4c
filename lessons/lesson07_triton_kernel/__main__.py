"""Lesson 7, played: the naive kernel until its waste shows, then the ladder, what it compiles to, and the score."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from lessons.lesson07_triton_kernel import LESSON
from lessons.lesson07_triton_kernel.counting import PROCESSORS, Setting, parts_bytes
from lessons.runner.stage import Stage, run

if TYPE_CHECKING:
    from lessons.lesson07_triton_kernel.compiled import MachineCode
    from lessons.lesson07_triton_kernel.experiment import Ragged, Rung, Sharing
    from lessons.lesson07_triton_kernel.timing import Timing

NEW = {
    "naive": "a program per query head, block by block",
    "tiled": "tiles of keys, online softmax",
    "grouped": "heads that share K and V together, tl.dot",
    "split": "contexts cut in runs, then a merge",
}


@dataclass(frozen=True)
class Figures:
    """What the lesson measured. `None` is what needs Triton, where there is none.

    Args:
        triton: how the kernels ran: "interpreted", "compiled" or None.
        setting: the decode step of the ladder.
        held_bytes: K and V of it, each once.
        parts_bytes: what the split kernel's partial results add, written and read.
        sharing: the naive kernel with fewer and fewer KV heads.
        rungs: the ladder.
        ragged: the engine's kernel on decodes and a prompt.
        tokens_equal: whether the engine drew the same tokens with the ladder's last kernel as with its own.
        num_tokens: how many.
        machine_code: the ladder compiled for a GPU that need not be here.
        timings: of the ladder, on a GPU.
    """

    triton: str | None
    setting: Setting
    held_bytes: int
    parts_bytes: int
    sharing: list[Sharing]
    rungs: list[Rung]
    ragged: Ragged
    tokens_equal: bool | None = None
    num_tokens: int | None = None
    machine_code: list[MachineCode] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)


def play(stage: Stage) -> Figures:
    """Both acts."""
    # The device is known now; Triton settles at its import, below, whether it compiles or interprets.
    if stage.device == "cpu" and "triton" not in sys.modules:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    if stage.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no CUDA device here; without --device, Triton's interpreter runs the kernels")
    from lessons.lesson07_triton_kernel import compiled, experiment, language

    step = experiment.setting(stage.small)
    answer: ModuleType | None = None
    if language.MISSING:
        stage.say(
            f"[yellow]{language.MISSING}.[/] Without it nothing is measured; what follows is reckoned, and the README "
            "explains it."
        )
    else:
        answer = stage.mine.module(LESSON)
    wanted = ["sm_80", "tiled", "grouped"] if stage.small else ["sm_80"]
    compiling = compiled.start(*wanted) if compiled.possible() else None  # goes on beside the interpreter

    stage.act(1, "one program per query head")
    stage.say(
        "On a GPU a kernel is written for one [bold]program[/]; the GPU runs many at a time, as many as it has "
        f"processors (an A100 has {PROCESSORS}). The first idea for a decode: one program for each query head. It "
        "follows the block table, block by block, once for the highest score and once more for the sum."
    )
    sharing = experiment.share(stage.small)
    stage.table(
        f"One sequence of {experiment.shared_context(stage.small)} keys, 8 query heads",
        ["KV heads", "cache holds, KiB", "kernel reads, KiB", "reads per byte"],
        [
            [s.kv_heads, _kib(s.held_bytes), _kib(_known(s.counted_bytes, s.read_bytes)),
             f"{_known(s.counted_bytes, s.read_bytes) / s.held_bytes:g}"]
            for s in sharing
        ],
    )  # fmt: skip
    stage.say(
        "A model shares KV heads among query heads so that there is less to store and to read. There is less to store. "
        "But the kernel reads as much as before: each program fetches for itself what its neighbours fetch too, and K "
        "twice."
    )

    contexts = " and ".join(map(str, step.contexts))
    stage.say(
        f"Now two sequences of {contexts} keys, {step.heads} query heads on {step.kv_heads} KV heads. The second "
        "kernel still has one program per query head, but online softmax, so one walk. The last takes the query heads "
        f"of a KV head together and cuts each context among {step.splits} programs."
    )
    reads = stage.predict(
        "reads of each KV byte by the second kernel", step.group, "reads",
        hint="One walk reads K once and V once. How many programs walk along the same KV head?",
    )  # fmt: skip
    programs = stage.predict(
        "programs of the last kernel", len(step.contexts) * step.kv_heads * step.splits, "programs",
        hint="Sequences, times KV heads, times splits.",
    )  # fmt: skip

    stage.act(2, "a ladder of four kernels")
    rungs = experiment.climb(step, answer)
    _show_ladder(stage, step, rungs, experiment.tolerance())
    from lessons.lesson07_triton_kernel.grid_picture import GridPicture

    stage.picture(GridPicture(step), "who reads which tile")
    code = compiled.finish(compiling) if compiling else []
    if code:
        _show_code(stage, code)
    timings: list[Timing] = []
    if stage.device == language.device() == "cuda" and answer is not None:
        from lessons.lesson07_triton_kernel.timing import time_ladder

        timings = time_ladder(answer, stage.small)
        _show_timings(stage, timings)
    ragged = experiment.ragged()
    _show_ragged(stage, ragged, experiment.RAGGED, experiment.tolerance())
    tokens_equal, num_tokens = _show_engine(stage, answer) if answer else (None, None)

    if answer is None:
        stage.say("Nothing was measured, so there is no score.")
    else:
        by_name = {rung.name: rung for rung in rungs}
        stage.score(reads, _known(by_name["tiled"].counted_bytes, 0) / step.held_bytes)
        stage.score(programs, _known(by_name["split"].counted_programs, 0))
    return Figures(
        triton=None if language.MISSING else "interpreted" if language.INTERPRETED else "compiled",
        setting=step,
        held_bytes=step.held_bytes,
        parts_bytes=parts_bytes(step),
        sharing=sharing,
        rungs=rungs,
        ragged=ragged,
        tokens_equal=tokens_equal,
        num_tokens=num_tokens,
        machine_code=code,
        timings=timings,
    )


def _show_ladder(stage: Stage, step: Setting, rungs: list[Rung], tolerance: float) -> None:
    rows = []
    for rung in rungs:
        read = _known(rung.counted_bytes, rung.cost.read_bytes)
        programs = _known(rung.counted_programs, rung.cost.programs)
        same = "—" if rung.difference is None else "yes" if rung.difference <= tolerance else "NO"
        rows.append([rung.name, programs, rung.cost.steps, _kib(read), f"{read / step.held_bytes:g}", same])
    stage.table(
        f"One decode step; the cache holds {_kib(step.held_bytes)} KiB",
        ["kernel", "programs", "steps of the longest", "reads, KiB", "reads per byte", "as the one before"],
        rows,
    )
    stage.say("\n".join(f"[bold]{rung.name}[/]: {NEW[rung.name]}" for rung in rungs))
    busy = rungs[2].cost.programs
    stage.say(
        f"Grouping brings the reads down to one per byte, and the programs to {busy}: on {PROCESSORS} processors, "
        f"{PROCESSORS - busy} would have nothing to do. Splitting brings programs back, and shortens the longest walk "
        f"from {rungs[2].cost.steps} steps to {rungs[3].cost.steps}. It costs {_kib(parts_bytes(step))} KiB of partial "
        "results, written by one kernel and read by the next: "
        f"{100 * parts_bytes(step) / step.held_bytes:.0f} % of the cache here, and less the longer the contexts are."
    )


def _show_code(stage: Stage, code: list[MachineCode]) -> None:
    from lessons.lesson07_triton_kernel.compiled import HEAD_DIM

    stage.table(
        f"The kernels compiled for an A100, float16, heads of {HEAD_DIM}",
        ["kernel", "registers", "spills", "shared, KiB", "wide", "narrow", "SHFL", "FFMA", "MMA"],
        [
            [c.kernel, c.registers, c.stack_bytes + c.local_bytes, _kib(c.shared_bytes),
             c.loads_by_bytes.get(16, 0), sum(n for b, n in c.loads_by_bytes.items() if b < 16),
             c.count("SHFL"), c.count("FFMA"), c.matrix_instructions]
            for c in code
        ],
    )  # fmt: skip
    stage.say(
        "Instructions as they stand in the code. A wide load fetches 16 bytes for each thread, a narrow one less. "
        "FFMA multiplies and adds one number for each thread; MMA multiplies two small matrices, once for all heads "
        "of a group. SHFL passes a number between threads, as sums across threads need. Spills are bytes that found "
        "no register."
    )


def _show_ragged(stage: Stage, ragged: Ragged, mix: Sequence[tuple[int, int]], tolerance: float) -> None:
    stage.table(
        "The engine's kernel, decodes and a prompt together",
        ["sequence", "new tokens", "context", "keys read per key held"],
        [
            ["a decode" if new == 1 else "a prompt", new, context, f"{read / context:g}"]
            for (new, context), read in zip(mix, ragged.cost.keys_read, strict=True)
        ],
    )
    known = {None: "", True: " Its answer is that of a gather and a softmax."}
    same = None if ragged.difference is None else ragged.difference <= tolerance
    stage.say(
        f"A program has {ragged.rows} rows, a row being a token in one query head. For each KV head "
        f"{ragged.cost.launched} programs are launched, a bound that needs no look at the lengths, and "
        f"{ragged.cost.busy} of them find rows.{known.get(same, ' Its answer is WRONG.')}"
    )


def _show_engine(stage: Stage, answer: ModuleType) -> tuple[bool, int]:
    from minipaged_kernels import backends

    from lessons.lesson07_triton_kernel.experiment import generate
    from lessons.lesson07_triton_kernel.plug import INTERPRETED_ROWS, TritonDecode, plug
    from lessons.runner.mine import Mine

    parts = stage.mine.parts()
    if LESSON.number not in stage.mine.answers:
        rest = backends.choose("auto" if stage.device == "cuda" else "reference", stage.device)
        parts = plug(replace(parts, attention=rest), answer)
    tokens = generate(parts, stage.small, stage.device)
    equal = tokens == generate(Mine().parts(), stage.small, stage.device)
    attention = parts.attention
    rows = attention.num_rows if isinstance(attention, TritonDecode) else 0
    whose = "your kernel" if LESSON.number in stage.mine.answers else "the last kernel"
    stage.say(
        f"The engine, with {whose} for its decodes: {len(tokens)} tokens of tiny-gpt, for which the kernel ran over "
        f"{rows} queries (one token in one layer each); "
        f"{'the same tokens as' if equal else 'NOT the tokens of'} the engine with its own."
        + (f" (In the interpreter it computes {INTERPRETED_ROWS} of them at most.)" if stage.mine.answers else "")
    )
    return equal, len(tokens)


def _show_timings(stage: Stage, timings: list[Timing]) -> None:
    copy = timings[0].gigabytes_per_second
    stage.table(
        "By the clock, float16, one layer",
        ["step", "kernel", "time", "cache read once", "of a copy"],
        [
            [t.step, t.kernel, f"{t.milliseconds:.3f} ms", f"{t.gigabytes_per_second:.0f} GB/s",
             f"{t.gigabytes_per_second / copy:.2f}×"]
            for t in timings
        ],
    )  # fmt: skip


def _known(counted: int | None, reckoned: int) -> int:
    return reckoned if counted is None else counted


def _kib(num_bytes: int) -> str:
    return f"{num_bytes / 1024:,.1f}".removesuffix(".0")


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
