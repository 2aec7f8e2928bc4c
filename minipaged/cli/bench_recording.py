"""Recording: what `--record` costs a step, in time and in bytes, with 1, 8 and 64 sequences that decode.

Turns of a few steps with a recorder that listens and without, in the order ABBA, so that a machine that slows down and
contexts that grow weigh on both alike. The trace goes to a file, as `--record`'s does. Meant to stay within
`AIM_SLOWDOWN` everywhere, and within `AIM_BYTES` a step with 64 sequences.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from minipaged.cli.options import settle_threads
from minipaged.cli.random_checkpoint import SIZES, write_checkpoint
from minipaged.trace_file import TraceWriter

if TYPE_CHECKING:
    from minipaged.llm import LLM
    from minipaged.request import Request
    from minipaged.trace import StepRecord

AIM_SLOWDOWN = 0.05
AIM_BYTES = 2048
AIM_BYTES_SEQUENCES = 64  # the aim in bytes is one for so many
STEPS = 10  # of a turn; one more before them is not timed, since it makes up for what was missed in the turn before
LONG_STRETCH = 96  # steps that are all recorded, for the bytes
PROMPT = 100
MIN_ROUNDS = 5
MODELS = ("tiny-gpt", "12.6M")


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """One model with so many decoding sequences.

    Args:
        model: "tiny-gpt", or a random one by its size.
        sequences: that decode, all of them in each step.
        milliseconds_without, milliseconds_with: a step, medians of the turns.
        slowdown: with ÷ without - 1 within a round of four turns, the median of all rounds.
        noise: the standard error of that median, by how far the rounds lie from it.
        rounds: so many there were.
        recorder_milliseconds: of a step, those within the recorder, median of the turns. It costs a little more, since
            it also pushes things out of the caches; but this can be told from the machine's noise.
        bytes_per_step: of the trace in the long run: the average line of a step, and an eighth more for the keyframes.
    """

    model: str
    sequences: int
    milliseconds_without: float
    milliseconds_with: float
    slowdown: float
    noise: float
    rounds: int
    recorder_milliseconds: float
    bytes_per_step: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--models, --sequences, --block-size, --seconds, --json."""
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="shipped, or random (default both)")
    parser.add_argument(
        "--sequences", type=int, nargs="+", default=[1, 8, 64], metavar="N", help="that decode (default 1 8 64)"
    )
    parser.add_argument("--block-size", type=int, default=16, metavar="N", help="token slots in a block (default 16)")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="spent on each row (default 5)")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    if min(args.sequences) < 1:
        raise ValueError(f"bench recording: --sequences has {min(args.sequences)}; it must be at least 1")
    if not 0 < args.seconds < float("inf"):
        raise ValueError(f"bench recording: --seconds is {args.seconds}; it must be above 0")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            for sequences in args.sequences:
                llm = _llm(model, Path(folder), sequences, args.block_size)
                results.append(measure(model, llm, sequences, args.seconds, Path(folder) / "run.trace"))
    if args.json:
        print(json.dumps([asdict(result) for result in results]))
        return 0
    table = Table(title=f"A step without a recorder and with one, all decoding, blocks of {args.block_size}")
    headings = ("model", "running", "ms without", "ms with", "in it", "slower", "noise", "bytes")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for result in results:
        table.add_row(
            result.model,
            str(result.sequences),
            f"{result.milliseconds_without:.2f}",
            f"{result.milliseconds_with:.2f}",
            f"{result.recorder_milliseconds:.3f}",
            f"{result.slowdown:.1%}",
            f"{result.noise:.1%}",
            f"{result.bytes_per_step:,.0f}",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(_verdict(results))
    return 0


def measure(model: str, llm: LLM, sequences: int, seconds: float, path: Path) -> RecordingResult:
    """Rounds of without, with, with, without; then a stretch that is all recorded, for the bytes."""
    from minipaged.recorder import KEYFRAME_EVERY, Recorder
    from minipaged.sampling_params import SamplingParams

    engine = llm.engine
    params = SamplingParams(temperature=0, max_tokens=2 + max(LONG_STRETCH, 4 * (1 + STEPS)), ignore_eos=True)

    def begin() -> list[Request]:
        """All decode after it. Their prompts' lengths differ, so that each step opens its share of blocks."""
        prompts = [[number, *range(1, PROMPT + number % 16)] for number in range(sequences)]
        requests = [engine.add_request(prompt, params) for prompt in prompts]
        engine.step()
        return requests

    def turn() -> float:
        """Seconds a step."""
        engine.step()
        gc.collect()
        gc.disable()  # a recorder that begins anew makes a lot at once; one that goes on does not, and it is measured
        began = time.perf_counter()
        for _ in range(STEPS):
            engine.step()
        seconds = time.perf_counter() - began
        gc.enable()
        return seconds / STEPS

    without: list[float] = []
    recorded: list[float] = []
    within: list[float] = []  # seconds in the recorder, of each step that it heard of
    in_recorder: list[float] = []  # of a step, for each turn
    with TraceWriter(path) as writer, Recorder(engine, writer) as recorder:

        def listen(record: StepRecord) -> None:
            began = time.perf_counter()
            recorder(record)
            within.append(time.perf_counter() - began)

        def turn_without() -> None:
            # It keeps a journal of nodes all the while; that is one entry in a dictionary for each block that is full.
            engine.listeners.remove(listen)
            without.append(turn())
            engine.listeners.append(listen)

        engine.listeners[engine.listeners.index(recorder)] = listen
        gc.collect()
        gc.freeze()  # the model and its libraries: each turn would look through them before it
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(without) < 2 * MIN_ROUNDS:
            requests = begin()
            turn_without()
            for _ in range(2):
                recorded.append(turn())
                in_recorder.append(statistics.fmean(within[-STEPS:]))
            turn_without()
            for request in requests:
                engine.cancel(request)
        gc.unfreeze()
        begin()
        bytes_before = path.stat().st_size
        for _ in range(LONG_STRETCH):
            engine.step()
        lines = path.read_bytes()[bytes_before:].splitlines(keepends=True)
    # Whether a keyframe falls into so few steps is luck, so their share is that which the recorder lets them have.
    bytes_of_steps = sum(len(line) for line in lines if not line.startswith(b'{"keyframe"'))
    bytes_per_step = bytes_of_steps / LONG_STRETCH * (1 + 1 / KEYFRAME_EVERY)
    rounds = len(without) // 2
    slowdowns = [sum(recorded[i : i + 2]) / sum(without[i : i + 2]) - 1 for i in range(0, 2 * rounds, 2)]
    slowdown = statistics.median(slowdowns)
    # A normal distribution's deviation is 1.48 times the median distance, and a median's error 1.25 times the mean's.
    noise = 1.48 * 1.25 * statistics.median(abs(other - slowdown) for other in slowdowns) / rounds**0.5
    return RecordingResult(
        model,
        sequences,
        1e3 * statistics.median(without),
        1e3 * statistics.median(recorded),
        slowdown,
        noise,
        rounds,
        1e3 * statistics.median(in_recorder),
        bytes_per_step,
    )


def _llm(model: str, folder: Path, sequences: int, block_size: int) -> LLM:
    """A new engine with room for all, on as many threads as `generate` and `watch` take."""
    from minipaged.llm import LLM

    if model != "tiny-gpt" and not (folder / model).exists():
        write_checkpoint(folder / model, SIZES[model])
    num_blocks = sequences * ((PROMPT + 16 + 2 + LONG_STRETCH) // block_size + 2)
    llm = LLM(
        model if model == "tiny-gpt" else folder / model,
        num_blocks=num_blocks, block_size=block_size, max_sequences=sequences,
        max_batch_tokens=sequences * (PROMPT + 16), share_prefixes=False,
    )  # fmt: skip
    settle_threads(llm)
    return llm


def _verdict(results: list[RecordingResult]) -> str:
    """The aims, and whether they are met."""
    slowest = max(results, key=lambda result: result.slowdown)
    met = "met" if slowest.slowdown <= AIM_SLOWDOWN else "missed"
    text = (
        f"The aim is at most {AIM_SLOWDOWN:.0%} in each row: {met}, the most is {slowest.slowdown:.1%} "
        f"({slowest.model}, {slowest.sequences})."
    )
    sizes = [result.bytes_per_step for result in results if result.sequences == AIM_BYTES_SEQUENCES]
    if sizes:
        text += (
            f" With {AIM_BYTES_SEQUENCES} sequences it is at most {AIM_BYTES:,} bytes a step: "
            f"{'met' if max(sizes) <= AIM_BYTES else 'missed'}, the most is {max(sizes):,.0f}."
        )
    return text
