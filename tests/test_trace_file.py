"""Traces that are cut off, damaged, of another version, or no traces; and what an intact one promises."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from minipaged import recorder
from minipaged.recorder import Recorder
from minipaged.trace import Moment
from minipaged.trace_file import COUNTS, KEPT_MOMENTS, LiveTrace, TraceReader, TraceWriter
from minipaged.viz.example import example_trace
from tests.house import House


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """A trace of 60 steps with keyframes, line by line."""
    house = House(12, 4, host_blocks=5, budget=16, max_sequences=4)
    live = LiveTrace()
    Recorder(house.engine, live, least_bytes=500)
    for number in range(9):
        house.add([1, 2, 3, 4, 5, 6, *range(11 * number, 12 * number)], max_tokens=16, n=1 + number % 3)
    for _ in range(60):
        house.step()
    assert len(live) == 60
    assert sum(line.startswith(b'{"keyframe"') for line in live.lines) > 3
    return live.lines


def moments(lines: list[bytes]) -> list[Moment]:
    trace = LiveTrace()
    for line in lines:
        trace.write(line)
    return [trace.moment(i) for i in range(len(trace))]


def written(folder: Path, data: bytes) -> Path:
    path = folder / "run.jsonl"
    path.write_bytes(data)
    return path


def test_a_trace_can_be_read_while_it_is_written(lines: list[bytes]) -> None:
    expected = moments(lines)
    trace = LiveTrace()
    for line in lines:
        trace.write(line)
        if len(trace):
            assert trace.moment(len(trace) - 1) == expected[len(trace) - 1]
            behind = len(trace) // 2
            assert trace.moment(behind) == expected[behind]


def test_a_trace_that_was_not_looked_at_for_long_can_be_entered_anywhere(lines: list[bytes]) -> None:
    """A keyframe behind what was read so far is of no use yet: what is written once may stand before it."""
    expected = moments(lines)
    for first in range(0, 60, 7):
        trace = LiveTrace()
        for line in lines:
            trace.write(line)
        for index in (first, 59, 0, first // 2):
            assert trace.moment(index) == expected[index]


def test_there_is_no_step_before_the_first_nor_behind_the_last(lines: list[bytes], tmp_path: Path) -> None:
    with TraceReader(written(tmp_path, b"".join(lines))) as trace:
        for index in (-1, 60):
            with pytest.raises(IndexError, match=f"has 60 steps; there is no step {index}"):
                trace.moment(index)


def test_what_was_looked_at_is_not_read_again(lines: list[bytes], tmp_path: Path) -> None:
    """Going back step by step reads each keyframe's lines a few times at most; counted, not timed."""
    with TraceReader(written(tmp_path, b"".join(lines))) as trace:
        reads = 0
        read = trace._read

        def counted(place: int) -> Any:
            nonlocal reads
            reads += 1
            return read(place)

        trace._read = counted  # type: ignore[method-assign]
        for index in reversed(range(60)):
            trace.moment(index)
        assert reads < 3 * 60
        reads = 0
        for index in random.Random(0).sample(range(60), 60):
            trace.moment(index)
        assert reads == 0, f"the last {KEPT_MOMENTS} are kept"


def test_seeking_reads_the_lines_from_the_last_keyframe_on(tmp_path: Path) -> None:
    house = House(40, 4)
    with TraceWriter(tmp_path / "run.jsonl") as writer:
        Recorder(house.engine, writer, least_bytes=2000)
        house.add(5, max_tokens=1500 // 10)
        house.run()
    with TraceReader(tmp_path / "run.jsonl") as trace:
        sizes = []
        read = trace._read
        trace._read = lambda place: sizes.append(1) or read(place)  # type: ignore[method-assign, func-returns-value]
        trace.moment(0)
        sizes.clear()
        trace.moment(len(trace) - 1)
        assert 0 < len(sizes) < len(trace) / 2


# A last line that is cut off ------------------------------------------------------------------------------------------


def test_cut_off_anywhere_the_steps_before_play(lines: list[bytes], tmp_path: Path) -> None:
    """At every byte of the last line, be it a step's or a keyframe's."""
    expected = moments(lines)
    keyframe = next(i for i, line in enumerate(lines) if line.startswith(b'{"keyframe"'))
    for last in (30, keyframe):
        before = b"".join(lines[:last])
        num_steps = sum(line.startswith(b'{"step"') for line in lines[:last])
        for size in range(1, len(lines[last]) - 1):
            with TraceReader(written(tmp_path, before + lines[last][:size])) as trace:
                path = tmp_path / "run.jsonl"
                assert trace.notice == f"trace {path}: the last line is cut off; there are {num_steps} whole steps"
                assert len(trace) == num_steps
                assert trace.moment(num_steps - 1) == expected[num_steps - 1]


def test_a_last_line_without_its_newline_is_whole(lines: list[bytes], tmp_path: Path) -> None:
    with TraceReader(written(tmp_path, b"".join(lines)[:-1])) as trace:
        assert trace.notice is None
        assert len(trace) == 60


def test_a_header_alone_is_a_trace_without_steps(lines: list[bytes], tmp_path: Path) -> None:
    with TraceReader(written(tmp_path, lines[0])) as trace:
        assert len(trace) == 0
        with pytest.raises(IndexError):
            trace.moment(0)


# What is refused ------------------------------------------------------------------------------------------------------


def refusal(folder: Path, data: bytes) -> str:
    with pytest.raises(ValueError) as refused:
        TraceReader(written(folder, data))
    message = str(refused.value)
    assert "\n" not in message
    prefix = f"trace {folder / 'run.jsonl'}"
    assert message.startswith(prefix)
    return message.removeprefix(prefix)


@pytest.mark.parametrize("version", ["1", "3", "0", "2.0", '"2"', "true", "null", "[1]", "NaN", "10000000000000000000"])
def test_another_version(lines: list[bytes], tmp_path: Path, version: str) -> None:
    other = lines[0].replace(b'"minipaged_trace":2', b'"minipaged_trace":' + version.encode())
    found = repr(json.loads(version))
    assert refusal(tmp_path, other + b"whatever\n") == f": its version is {found}; this program reads version 2"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"hello\n",
        b"{}\n",
        b"[1]\n",
        b"null\n",
        b"\x80\x81\xff\x00" * 100,
        b"[" * 100_000,
        b'{"minipaged_tr',
        gzip.compress(b'{"minipaged_trace":1}\n'),
        b'{"minipaged_trace":' + b"9" * 5000 + b"}\n",
    ],
    ids=["empty", "blank", "text", "object", "list", "null", "binary", "deep", "cut off", "gzip", "a long number"],
)
def test_no_trace(tmp_path: Path, data: bytes) -> None:
    assert refusal(tmp_path, data) == ", line 1: this is not a minipaged trace"


@pytest.mark.parametrize(
    "change",
    [
        {"num_blocks": "24"},
        {"num_blocks": -3},
        {"num_blocks": 0},
        {"num_blocks": 10**12},
        {"num_host_blocks": 10**12},
        {"block_size": 0},
        {"block_size": True},
        {"block_bytes": 1.5},
        {"max_batch_tokens": 10**30},
        {"max_sequences": 0},
        {"extra": 1},
        {"counts": [1]},
        {"counts": []},
        {"counts": [*COUNTS, COUNTS[0]]},
        {"counts": None},
        {"description": None},
    ],
    ids=str,
)
def test_a_damaged_header(lines: list[bytes], tmp_path: Path, change: dict[str, Any]) -> None:
    header = json.dumps({**json.loads(lines[0]), **change}).encode() + b"\n"
    assert refusal(tmp_path, header) == ", line 1: the header is damaged"


def test_a_file_that_never_ends_its_first_line_is_not_read_for_ever() -> None:
    with pytest.raises(ValueError, match=r"^trace /dev/zero, line 1: this is not a minipaged trace$"):
        TraceReader("/dev/zero")


def test_what_a_recorder_counts_is_what_every_trace_has() -> None:
    assert set(COUNTS) == set(recorder.COUNTS)


def step(**more: Any) -> bytes:
    """A line that could stand anywhere but for its number, which is 3, and what is wrong with it."""
    return json.dumps({"step": 3, "time": [0, 0], "slots": [1, 1], **more}).encode()


GARBAGE = {
    "blank": b"",
    "text": b"hello",
    "binary": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "an empty object": b"{}",
    "a list": b"[]",
    "a number": b"17",
    "a string": b'"step"',
    "half of what a step needs": b'{"step": 3}',
    "a key that is unknown": step(colour=1),
    "a step that is no number": step(step="3"),
    "a step that is half a number": step(step=3.0),
    "a step before the first": step(step=-1),
    "a time that is text": step(time=["0", "0"]),
    "a time that is no number": step(time=[float("nan"), 0]),
    "a time without an end": step(time=[0, float("inf")]),
    "a time that no float can be": step(time=[10**400, 0]),
    "less than no slot": step(slots=[-1, 1]),
    "slots beyond all numbers": step(slots=[10**30, 1]),
    "queues that are text": step(queues=["1", "2"]),
    "an error that is a number": step(error=5),
    "nothing as an error": step(error=None),
    "a cause that is a list": step(waiting_cause=["no blocks"]),
    "an event without a cause": step(events=[["admit", 0, None]]),
    "an event of nobody's": step(events=[["admit", None, "it came"]]),
    "a title that is a number": step(requests=[[99, 5, 17]]),
    "a prompt of less than nothing": step(requests=[[99, -5, "tea"]]),
    "a sequence of no request": step(sequences=[[99, 99, 0]]),
    "somebody runs who never came": step(running=[[], [0, 999]]),
    "somebody goes who is not here": step(running=[[999], []]),
    "a node in a block that is not there": step(nodes=[[99, 12, None, 1, 5, 6, 7, 8]]),
    "a node in a host block that is not there": step(nodes=[[99, None, 5, 1, 5, 6, 7, 8]]),
    "a node in a block by name": step(nodes=[[99, "1", None, 1, 5, 6, 7, 8]]),
    "a node that is nowhere": step(nodes=[[99, None, None, 1, 5, 6, 7, 8]]),
    "a node of three tokens": step(nodes=[[99, 1, None, 1, 5, 6, 7]]),
    "a chunk of text": step(chunks=[[0, 0, "a", "b", 0, "decode"]]),
    "a chunk that goes backwards": step(chunks=[[0, 0, 0, -1, 0, "decode"]], tables=[[0, 0, 1]]),
    "a block that is not there": step(chunks=[[99, 0, 0, 1, 0, "decode"]], tables=[[99, 0, 12]]),
    "a copy from a block that is not there": step(operations=[["CopyBlock", 12, 1]]),
    "a host block that is not there": step(operations=[["SwapOut", 1, 5]]),
    "a count that is less than nothing": step(counts=[0, -1]),
    "a time without its length": step(time=[0]),
    "more who decode than ran": step(chunks=[999]),
    "less than one who decodes": step(chunks=[-1]),
    "half a sequence decodes": step(chunks=[0.5]),
    "a chunk of an unknown kind": step(chunks=[[0, 0, 0, 1, 0, "guess"]]),
    "a token that nobody drew": step(drawn=[5]),
    "an unknown operation": step(operations=[["Fly", 1]]),
    "half an operation": step(operations=[["SwapIn", 1]]),
    "a table that keeps more than it had": step(tables=[[0, 99, 1]]),
    "a node that was never there is gone": step(nodes=[[999]]),
    "a count of nothing": step(counts=[99, 1]),
    "an empty keyframe": b'{"keyframe":{}}',
    "a keyframe that says something else": b'{"keyframe":{"running":[],"waiting":[],"nodes":[],"counts":[]}}',
}


@pytest.mark.parametrize("line", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.parametrize("place", [1, 17])
def test_garbage_is_refused_and_its_line_named(lines: list[bytes], tmp_path: Path, line: bytes, place: int) -> None:
    due = json.loads(lines[place])["step"]
    data = b"".join([*lines[:place], line.replace(b'"step": 3', b'"step": %d' % due) + b"\n", *lines[place:]])
    message = refusal(tmp_path, data)
    assert message.startswith(f", line {place + 1}: this is not a line of a trace (")
    assert len(message) < 200


def test_a_line_that_is_missing_is_noticed_at_once(lines: list[bytes], tmp_path: Path) -> None:
    """But for a keyframe: the lines before it say as much. The last step is not missed by anybody."""
    steps = [place for place, line in enumerate(lines) if line.startswith(b'{"step"')]
    for number, place in enumerate(steps[:-1]):
        without = lines[:place] + lines[place + 1 :]
        after = steps[number + 1]  # a keyframe may stand between the two: then it is the first that does not fit
        message = refusal(tmp_path, b"".join(without))
        if after == place + 1:
            assert (
                message == f", line {after}: this is step {number + 1}, where step {number} is due: a line is missing"
            )
        else:
            assert message.startswith(f", line {place + 1}: this is not a line of a trace (the keyframe is not what")


def test_lines_that_are_there_twice_or_in_another_order(lines: list[bytes], tmp_path: Path) -> None:
    told = "it is there twice, or the lines are in another order"
    steps = [place for place, line in enumerate(lines) if line.startswith(b'{"step"')]
    place = next(place for place in steps[5:] if place + 1 in steps and place + 2 in steps)
    number = steps.index(place)
    twice = [*lines[: place + 1], *lines[place:]]
    assert refusal(tmp_path, b"".join(twice)) == (
        f", line {place + 2}: this is step {number}, where step {number + 1} is due: {told}"
    )
    turned = [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]
    assert refusal(tmp_path, b"".join(turned)) == (
        f", line {place + 1}: this is step {number + 1}, where step {number} is due: a line is missing"
    )
    joined = lines[place].rstrip(b"\n")
    assert refusal(tmp_path, b"".join([*lines[:place], joined, *lines[place + 1 :]])).startswith(
        f", line {place + 1}: this is not a line of a trace (Extra data"
    )
    assert refusal(tmp_path, b"".join([*lines, *lines])).startswith(
        f", line {len(lines) + 1}: this is not a line of a trace (unknown key"
    )


def test_line_ends_of_another_system_and_a_mark_at_the_beginning_do_not_matter(
    lines: list[bytes], tmp_path: Path
) -> None:
    expected = moments(lines)
    data = b"\xef\xbb\xbf" + b"".join(lines).replace(b"\n", b"\r\n")
    with TraceReader(written(tmp_path, data)) as trace:
        assert [trace.moment(i) for i in range(len(trace))] == expected


def test_random_damage_is_refused_in_one_line_or_does_not_matter(lines: list[bytes], tmp_path: Path) -> None:
    """Bytes overwritten, doubled or lost anywhere: every step can be looked at, or the file is refused."""
    whole, noise, refused = b"".join(lines), random.Random(0), 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(noise.randint(1, 3)):
            place = noise.randrange(len(data))
            data[place : place + noise.randint(0, 3)] = noise.choice(
                [b"", b"0", b"[", b'"', b",", b"\n", b"\xff", b"null"]
            )
        try:
            trace = TraceReader(written(tmp_path, bytes(data)))
        except ValueError as error:
            assert "\n" not in str(error)
            refused += 1
            continue
        with trace:
            for index in range(len(trace)):
                _ = trace.moment(index).device_blocks, trace.moment(index).host_blocks
    assert refused > 200


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"it cannot be read: No such file or directory$"):
        TraceReader(tmp_path / "nothing.jsonl")
    with pytest.raises(ValueError, match=r"it cannot be read: Is a directory$"):
        TraceReader(tmp_path)
    with pytest.raises(ValueError, match=r"it cannot be written: Is a directory$"):
        TraceWriter(tmp_path)
    with pytest.raises(ValueError, match=r"it cannot be written: No such file or directory$"):
        TraceWriter(tmp_path / "nowhere" / "run.jsonl")


def test_two_runs_are_not_recorded_in_one_file(lines: list[bytes], tmp_path: Path) -> None:
    """The second is refused before it empties the file; when the first is done, the file is free."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"an old trace")
    with TraceWriter(path) as writer:
        writer.write(lines[0])
        with pytest.raises(ValueError, match=r"run.jsonl: it cannot be written: another run is recorded there$"):
            TraceWriter(path)
        writer.write(lines[1])
    assert path.read_bytes() == lines[0] + lines[1]
    TraceWriter(path).close()
    assert path.read_bytes() == b""


def test_what_is_no_file_can_be_written_by_several() -> None:
    with TraceWriter("/dev/null") as first, TraceWriter("/dev/null") as second:
        first.write(b"a")
        second.write(b"b")


def test_a_trace_that_grows_while_it_is_read_is_what_it_was(lines: list[bytes], tmp_path: Path) -> None:
    expected = moments(lines)
    path = tmp_path / "run.jsonl"
    with TraceWriter(path) as writer:
        for line in lines[:30]:
            writer.write(line)
        with TraceReader(path) as trace:
            num_steps = len(trace)
            for line in lines[30:]:
                writer.write(line)
                assert len(trace) == num_steps
            assert [trace.moment(i) for i in reversed(range(num_steps))] == expected[:num_steps][::-1]


def test_a_trace_that_is_overwritten_while_it_is_read(lines: list[bytes], tmp_path: Path) -> None:
    with TraceReader(written(tmp_path, b"".join(lines))) as trace:
        trace.moment(50)
        (tmp_path / "run.jsonl").write_bytes(lines[0])
        with pytest.raises(ValueError, match=r"run.jsonl: it was overwritten while it was being read$"):
            trace.moment(3)


# What is written ------------------------------------------------------------------------------------------------------


def test_titles_and_causes_in_any_script(tmp_path: Path) -> None:
    """Also what UTF-8 does not have: a lone surrogate comes back as it was."""
    house = House(8, 4)
    path = tmp_path / "运行 1.jsonl"
    with TraceWriter(path) as writer:
        title = "请解释\t什么是黑洞 \ud800 \x1b[31m"
        Recorder(house.engine, writer, description="描述\n\udc80", title=lambda request: title)
        house.add(4, max_tokens=3)
        house.step()
    with TraceReader(path) as trace:
        assert trace.header.description == "描述\n\udc80"
        assert trace.moment(0).running[0].title == title
    assert "黑洞" in path.read_text(encoding="utf-8"), "a person can read it"


def test_static_facts_stand_in_the_file_once(lines: list[bytes]) -> None:
    """Titles, and which tokens a node stands for, are not in keyframes."""
    new: list[int] = []
    requests: list[int] = []
    for line in map(json.loads, lines[1:]):
        new += [node[0] for node in line.get("nodes", ()) if len(node) > 3]
        requests += [request[0] for request in line.get("requests", ())]
    assert len(new) == len(set(new)) > 20
    assert sorted(requests) == list(range(9))


def test_the_example_from_a_file(tmp_path: Path) -> None:
    live = example_trace()
    assert isinstance(live, LiveTrace)
    with TraceReader(written(tmp_path, b"".join(live.lines))) as trace:
        assert [trace.moment(i) for i in range(len(trace))] == [live.moment(i) for i in range(len(live))]
