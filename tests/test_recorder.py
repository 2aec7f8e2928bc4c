"""What a trace says at any step is what the books said then, to the block; and recording disturbs nothing."""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from minipaged import LLM, SamplingParams
from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.recorder import Recorder
from minipaged.request import Request
from minipaged.trace import Moment, StepRecord, Trace
from minipaged.trace_file import LiveTrace, TraceReader, TraceWriter
from minipaged.viz.example import example_trace
from tests.house import House
from tests.recorded import Witness, assert_blocks_are_the_books
from tests.test_scheduler_machine import SchedulerMachine


def title(request: Request) -> str:
    return f"request {request.id}"


def recorded(house: House, *sinks: Any, **options: Any) -> tuple[LiveTrace, Witness]:
    """Record a house, with a keyframe after every few steps, and note what its books say."""
    trace = LiveTrace()
    Recorder(house.engine, trace, *sinks, title=title, **{"least_bytes": 300, **options})
    return trace, Witness(house.engine)


def assert_all_orders(trace: Trace, expected: list[Moment], seed: int = 0) -> None:
    """Forward, backward, and to and fro."""
    assert len(trace) == len(expected)
    steps = list(range(len(expected)))
    for index in (*steps, *reversed(steps), *random.Random(seed).sample(steps, len(steps))):
        assert trace.moment(index) == expected[index]


class RecorderMachine(SchedulerMachine):
    """Arrivals, forks, cancellations, faults, small pools, host pools, with and without sharing: after every step the
    trace says what the books say."""

    def prepare(self) -> None:
        self.trace = LiveTrace()
        self.recorder = Recorder(self.house.engine, self.trace, title=title, least_bytes=300)
        self.witness = Witness(self.house.engine)
        self.house.engine.listeners.append(self.compare)

    def compare(self, record: StepRecord) -> None:
        moment = self.trace.moment(len(self.trace) - 1)
        assert moment == self.witness.moments[-1]
        assert_blocks_are_the_books(moment, self.house.memory)

    @rule()
    def start_another_recording(self) -> None:
        """In the middle of a run: what is there already is in its first step."""
        self.teardown_trace()
        self.recorder.close()
        self.house.engine.listeners.remove(self.witness)
        self.house.engine.listeners.remove(self.compare)
        self.prepare()

    @precondition(lambda self: self.house.engine.has_work)
    @rule()
    def miss_a_step(self) -> None:
        """An earlier listener fails: nobody behind it hears of the step."""

        def fails(record: StepRecord) -> None:
            raise RuntimeError("not my day")

        self.house.engine.listeners.insert(0, fails)
        try:
            self.house.engine.step()
        except RuntimeError:
            pass
        finally:
            self.house.engine.listeners.remove(fails)

    @precondition(lambda self: len(self.trace) > 0)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.trace) - 1))
        assert self.trace.moment(index) == self.witness.moments[index]

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "house"):
            self.teardown_trace()

    def teardown_trace(self) -> None:
        again = LiveTrace()
        for line in self.trace.lines:
            again.write(line)
        steps = list(range(len(again)))
        random.Random(len(steps)).shuffle(steps)
        for index in steps:  # to and fro, in a trace of which nothing was read before
            assert again.moment(index) == self.witness.moments[index]
        for index in reversed(range(len(again))):
            assert again.moment(index) == self.witness.moments[index]


TestRecorder = RecorderMachine.TestCase


def busy_house(**options: Any) -> House:
    """A pool that is too small for what `work` asks of it."""
    return House(12, 4, **{"host_blocks": 5, "budget": 16, "max_sequences": 4, **options})


def work(house: House) -> None:
    """Eight requests that share a beginning, one of them for three answers."""
    for number in range(8):
        n = 3 if number == 2 else 1
        house.add([1, 2, 3, 4, 5, 6, *range(10 * number, 11 * number + 3)], max_tokens=9 + number, n=n)
    house.run()
    house.assert_answers_right()


@pytest.mark.parametrize("share_prefixes", [True, False])
@pytest.mark.parametrize("host_blocks", [0, 5])
def test_a_file_says_the_same_in_every_order(tmp_path: Path, share_prefixes: bool, host_blocks: int) -> None:
    house = busy_house(share_prefixes=share_prefixes, host_blocks=host_blocks)
    with TraceWriter(tmp_path / "run.jsonl") as writer:
        live, witness = recorded(house, writer)
        work(house)
    with TraceReader(tmp_path / "run.jsonl") as trace:
        assert trace.notice is None
        assert trace.header == live.header
        assert_all_orders(trace, witness.moments)
    assert_all_orders(live, witness.moments, seed=1)
    assert (tmp_path / "run.jsonl").read_bytes().count(b'{"keyframe"') > 2


def test_a_record_says_what_was_moved_and_drawn() -> None:
    """Added up over the run, it is what the counts say, and what everybody answered."""
    house = busy_house()
    trace, _ = recorded(house)
    work(house)
    operations = [operation for i in range(len(trace)) for operation in trace.moment(i).record.operations]
    counts = trace.moment(len(trace) - 1).counts
    for kind, name in ((CopyBlock, "copies"), (SwapOut, "swaps_out"), (SwapIn, "swaps_in")):
        assert sum(isinstance(operation, kind) for operation in operations) == counts[name] > 0
    for request in house.requests:
        for sequence in request.sequences:
            drawn = [d for i in range(len(trace)) for id, d in trace.moment(i).record.drawn if id == sequence.id]
            assert drawn == sequence.output_token_ids


def test_a_step_that_fails_moved_what_it_moved() -> None:
    """What it did not get to is the next step's, and in that record alone."""
    house = House(2, 2, host_blocks=2)
    for prompt in ([1, 2, 3], [5, 6, 7]):
        house.add(prompt)
        house.run()
    records: list[StepRecord] = []
    house.engine.listeners.append(records.append)
    house.add([9, 10, 11])
    house.runner.fail_after_ops[house.scheduler.num_steps] = 1
    house.step()
    planned = tuple(house.runner.plans[-1].memory_ops)
    house.add([12])
    house.step()
    assert len(planned) > 1
    assert records[0].operations == planned[:1]
    assert records[1].operations[: len(planned) - 1] == planned[1:]


def test_an_answer_that_was_ended_before_it_parted_draws_nothing() -> None:
    house = House(20, 4)
    request = house.add(5, max_tokens=3, n=3)
    house.engine.finish(request.sequences[1], "cancelled")
    records: list[StepRecord] = []
    house.engine.listeners.append(records.append)
    house.step()
    assert [id for id, _ in records[0].drawn] == [0, 2]
    assert request.sequences[1].output_token_ids == []


def test_who_ran_and_waits_again_while_nobody_recorded() -> None:
    """The queue looks as it did; the numbers do not."""
    house = House(4, 2, budget=3, max_sequences=2)
    trace, witness = recorded(house)
    house.add(3, max_tokens=6)
    waits = house.add(2, max_tokens=4).sequences[0]
    house.step()
    assert house.scheduler.waiting == (waits,)
    listeners, house.engine.listeners = house.engine.listeners, []
    house.step()
    house.step()
    assert house.scheduler.waiting == (waits,)
    house.engine.listeners = listeners
    house.step()
    assert trace.moment(1) == witness.moments[1]
    assert trace.moment(1).waiting[0].num_preemptions == 1


def test_what_an_operation_moves_is_where_the_next_moment_has_it() -> None:
    """Replaying nothing but the records' operations and chunks gives every node's tokens back from its blocks."""
    trace = example_trace()
    size = trace.header.block_size
    device: list[list[int | None]] = [[None] * size for _ in range(trace.header.num_blocks)]
    host: list[list[int | None]] = [[None] * size for _ in range(trace.header.num_host_blocks)]
    for i in range(len(trace)):
        moment = trace.moment(i)
        for operation in moment.record.operations:
            match operation:
                case CopyBlock(source, destination):
                    device[destination] = list(device[source])
                case SwapOut(block, copy):
                    host[copy] = list(device[block])
                case SwapIn(copy, block):
                    device[block] = list(host[copy])
        new = {node.device: node.tokens for node in moment.nodes.values() if node.device is not None}
        for chunk in moment.record.chunks:  # a full block's tokens are its node's
            for logical in range(chunk.start // size, (chunk.start + chunk.num_tokens) // size):
                block = chunk.block_table[logical]
                device[block] = list(new.get(block, device[block]))
        for node in moment.nodes.values():
            assert node.device is None or tuple(device[node.device]) == node.tokens
            assert node.host is None or tuple(host[node.host]) == node.tokens


def test_the_example_has_everything_that_a_picture_must_show() -> None:
    trace = example_trace()
    moments = [trace.moment(i) for i in range(len(trace))]
    assert {type(o) for m in moments for o in m.record.operations} == {CopyBlock, SwapOut, SwapIn}
    assert {e.kind for m in moments for e in m.record.events} == {"admit", "fork", "preempt", "finish"}
    assert {c.kind for m in moments for c in m.record.chunks} == {"prefill", "recompute", "decode"}
    assert {m.record.waiting_cause for m in moments} == {
        None, "no blocks", "no budget", "no place", "memory was just found too small",
    }  # fmt: skip
    assert any(len(block.holders) == 3 for m in moments for block in m.device_blocks)
    assert {m.running[0].title for m in moments if m.running} >= {"tea, with the system prompt"}
    again = example_trace()
    assert [again.moment(i) for i in range(len(again))] == moments, "it is the same run every time"


# What waits, and why --------------------------------------------------------------------------------------------------


def causes(house: House, steps: int) -> list[str | None]:
    records: list[StepRecord] = []
    house.engine.listeners.append(records.append)
    for _ in range(steps):
        house.step()
    return [record.waiting_cause for record in records]


def test_nobody_waits() -> None:
    house = House(8, 4)
    house.add(4, max_tokens=2)
    assert causes(house, 1) == [None]


def test_no_blocks() -> None:
    house = House(4, 4)
    house.add(9, max_tokens=3)
    house.add(9, max_tokens=3)
    assert causes(house, 4) == ["no blocks", "no blocks", "no blocks", None]


def test_no_budget_before_no_place() -> None:
    house = House(20, 4, budget=8, max_sequences=2)
    for _ in range(3):
        house.add(8, max_tokens=4)
    assert causes(house, 5) == ["no budget", "no budget", "no place", "no place", None]


def test_memory_was_just_found_too_small() -> None:
    house = House(4, 2)
    house.add(3, max_tokens=6)
    house.add(3, max_tokens=6)
    assert causes(house, 4) == [None, None, "memory was just found too small", "no blocks"]


def test_a_fork_that_finds_no_place() -> None:
    house = House(20, 4, max_sequences=2)
    house.add(4, max_tokens=3, n=3)
    assert causes(house, 1) == ["no place"]


def test_a_request_that_comes_during_the_step() -> None:
    house = House(20, 4)
    house.add(4, max_tokens=3)
    house.runner.during_run = lambda: house.add(4, max_tokens=3) and None
    assert causes(house, 2) == ["just came", None]


# What goes wrong ------------------------------------------------------------------------------------------------------


class FullDisk:
    """Takes so many lines."""

    def __init__(self, lines: int, error: Exception) -> None:
        self.left, self.error = lines, error

    def write(self, line: bytes) -> None:
        if not self.left:
            raise self.error
        self.left -= 1

    def __str__(self) -> str:
        return "trace run.jsonl"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError("I/O operation on closed file"), "I/O operation on closed file"),
    ],
)
def test_a_sink_that_fails_is_left_alone(caplog: pytest.LogCaptureFixture, error: Exception, message: str) -> None:
    """One line in the log; the other sink and the engine go on."""
    message = f"trace run.jsonl: recording stopped at step 3: {message}"
    house = busy_house()
    live = LiveTrace()
    recorder = Recorder(house.engine, FullDisk(4, error), live, title=title, least_bytes=10**6)
    witness = Witness(house.engine)
    with caplog.at_level(logging.WARNING):
        work(house)
    assert [record.getMessage() for record in caplog.records] == [message]
    assert recorder.failures == [message]
    assert_all_orders(live, witness.moments)


def test_without_a_sink_that_works_nothing_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    house = busy_house()
    Recorder(house.engine, FullDisk(3, OSError(28, "No space left on device")))
    work(house)
    assert len(caplog.records) == 1
    assert house.engine.listeners == []
    assert house.memory.tiers.journal is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_disk_that_is_really_full(caplog: pytest.LogCaptureFixture) -> None:
    house = busy_house()
    with TraceWriter("/dev/full") as writer:
        recorder = Recorder(house.engine, writer)
        work(house)
    assert recorder.failures == ["trace /dev/full: recording stopped before the first step: No space left on device"]


def test_a_file_that_is_closed_too_early(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    house = busy_house()
    writer = TraceWriter(tmp_path / "run.jsonl")
    recorder = Recorder(house.engine, writer)
    house.add(5, max_tokens=8)
    house.step()
    writer.close()
    house.run()
    house.assert_answers_right()
    assert len(caplog.records) == len(recorder.failures) == 1
    assert "closed" in recorder.failures[0]
    with TraceReader(tmp_path / "run.jsonl") as trace:
        assert len(trace) == 1


def test_a_title_that_cannot_be_had_ends_the_recording_and_not_the_books() -> None:
    house = busy_house()

    def fails(request: Request) -> str:
        raise LookupError("no title")

    Recorder(house.engine, LiveTrace(), title=fails)
    house.add(5, max_tokens=8)
    with pytest.raises(LookupError):
        house.engine.step()
    work(house)
    house.assert_empty()


@pytest.mark.parametrize("seed", range(6))
def test_ctrl_c_at_any_moment(seed: int) -> None:
    """A step that was interrupted leaves no record; the next one's says all that has changed since."""
    house = busy_house()
    trace, witness = recorded(house)
    for round in range(5):
        for number in range(4):
            house.add([1, 2, 3, number], max_tokens=6)
        previous = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        gc.disable()  # a KeyboardInterrupt within one of hypothesis's callbacks to it would be lost
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 * (seed + 1) + 0.0011 * round)
            for _ in range(100_000):
                house.engine.step()
            pytest.fail("nothing interrupted it")
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            gc.enable()
        house.memory.check()
    house.add(5, max_tokens=3)
    house.run()
    known = {moment.record.step: moment for moment in witness.moments}
    for index in range(len(trace)):  # the witness, who stands behind the recorder, may have been interrupted itself
        moment = trace.moment(index)
        assert known.get(moment.record.step, moment) == moment
    assert trace.moment(len(trace) - 1) == witness.moments[-1]


@pytest.mark.parametrize("where", ["before the trace has the line", "after"])
def test_ctrl_c_while_a_line_is_written(where: str) -> None:
    """The next line begins anew, whoever had the last one."""

    class Interrupted:
        def __init__(self) -> None:
            self.lines = 0

        def write(self, line: bytes) -> None:
            self.lines += 1
            if self.lines in (9, 10, 25):
                raise KeyboardInterrupt

    house, live, interrupted = busy_house(), LiveTrace(), Interrupted()
    sinks = (interrupted, live) if where.startswith("before") else (live, interrupted)
    Recorder(house.engine, *sinks, title=title, least_bytes=10**6)
    witness = Witness(house.engine)
    for number in range(8):
        house.add([1, 2, 3, 4, 5, 6, *range(10 * number, 11 * number + 3)], max_tokens=9 + number)
    strikes = 0
    while house.engine.has_work:
        try:
            house.step()
        except KeyboardInterrupt:
            strikes += 1
    assert strikes == 3
    assert len(live) == len(witness.moments) + (0 if where.startswith("before") else 3)
    noted = {moment.record.step: moment for moment in witness.moments}
    for index in (*range(len(live)), *reversed(range(len(live)))):
        moment = live.moment(index)
        assert noted.get(moment.record.step, moment) == moment


def test_a_run_that_is_recorded_late_and_a_step_that_is_missed_can_be_read_back(tmp_path: Path) -> None:
    """Their lines begin anew, so that a reader can tell them from lines that were lost."""
    house = busy_house()
    house.add(9, max_tokens=30)
    house.step()
    house.step()
    path = tmp_path / "late.trace"
    with TraceWriter(path) as writer:
        Recorder(house.engine, writer, title=title, least_bytes=10**6)
        witness = Witness(house.engine)
        for _ in range(3):
            house.step()
        house.add(5, max_tokens=4)

        def interrupt() -> None:
            raise KeyboardInterrupt

        house.runner.during_run = interrupt
        with pytest.raises(KeyboardInterrupt):
            house.step()
        house.add(7, max_tokens=4)
        house.run()
    with TraceReader(path) as trace:
        assert [trace.moment(index).record.step for index in range(5)] == [2, 3, 4, 6, 7]
        assert_all_orders(trace, witness.moments)
    lines = path.read_bytes().splitlines()
    assert [index for index, line in enumerate(lines) if b'"anew":true' in line] == [1, 4]


def test_a_second_recorder_is_refused() -> None:
    house = House(8, 4)
    with Recorder(house.engine, LiveTrace()), pytest.raises(ValueError, match="has a recorder already"):
        Recorder(house.engine, LiveTrace())
    Recorder(house.engine, LiveTrace()).close()
    assert house.engine.listeners == []


def test_a_memory_without_blocks_is_refused() -> None:
    house = House(8, 4)
    house.engine.scheduler.memory = object()  # type: ignore[assignment]
    with pytest.raises(ValueError, match="memory is a object; it must be a KVManager"):
        Recorder(house.engine, LiveTrace())


# What it costs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_size", [4, 8, 16])
def test_64_sequences_take_at_most_2_kb_a_step(block_size: int) -> None:
    """Keyframes, header and waiting requests included; the first steps, which admit everybody, too."""
    house = House(64 * 160 // block_size, block_size, host_blocks=200, budget=512)
    trace, _ = recorded(house, least_bytes=16_384)
    for number in range(160):
        house.add(20 + number % 60, max_tokens=60 + number % 40, temperature=1.0)
    house.run()
    busy = [i for i in range(len(trace)) if len(trace.moment(i).record.chunks) == 64]
    assert len(busy) > 100
    assert sum(map(len, trace.lines)) / len(trace) <= 2048


def test_a_decode_costs_a_few_bytes() -> None:
    """Of a sequence whose table does not change: its token and a comma."""
    house = House(64, 32)
    trace, _ = recorded(house, least_bytes=10**6)
    for _ in range(10):
        house.add(3, max_tokens=20)
    for _ in range(10):
        house.step()
    house.engine.cancel(house.requests[0])
    house.step()
    house.step()
    with_nine = len(trace.lines[-1])
    house.engine.cancel(house.requests[1])
    house.step()
    house.step()
    assert 0 < with_nine - len(trace.lines[-1]) <= 6


def test_who_stands_behind_one_that_is_gone_is_counted_all_the_same() -> None:
    """A cancellation between two steps: one chunk is written out, and none of those behind it."""
    house = House(64, 32)
    trace, _ = recorded(house, least_bytes=10**6)
    for _ in range(10):
        house.add(3, max_tokens=20)
    house.step()
    house.step()
    assert json.loads(trace.lines[-1])["chunks"] == [10]
    house.engine.cancel(house.requests[4])
    house.step()
    assert json.loads(trace.lines[-1])["chunks"] == [4, [5, 5, 4, 1, 0, "decode"], 4]
    chunks = trace.moment(len(trace) - 1).record.chunks
    assert [chunk.sequence for chunk in chunks] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_the_shipped_model_is_recorded_with_titles(tiny_folder: Path, tmp_path: Path) -> None:
    """Through the public door: `LLM`, a title from the prompt, a file."""
    llm = LLM(tiny_folder, num_blocks=24, block_size=4, host_blocks=8)
    with TraceWriter(tmp_path / "run.jsonl") as writer, Recorder(llm.engine, writer, description=llm.description):
        llm.generate(["the cat sat on the mat"] * 3, SamplingParams(max_tokens=8, ignore_eos=True), progress=False)
    with TraceReader(tmp_path / "run.jsonl") as trace:
        assert trace.header.description == llm.description
        assert trace.header.block_bytes == llm.kv_cache.block_bytes
        assert trace.moment(len(trace) - 1).running == ()
        assert trace.moment(1).counts["tokens_from_device"] > 0, "the second prompt shares the first one's blocks"
