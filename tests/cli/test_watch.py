"""`minipaged watch` and `minipaged replay` where nothing can be drawn; how they look in a terminal: tests/viz."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minipaged.cli import main
from minipaged.cli.watch import Feed
from minipaged.cli.workload import BUILT_IN, read_workload
from minipaged.llm import LLM
from minipaged.trace_file import TraceReader

WORK = """
{"prompt": "abcd efgh ijkl", "max_tokens": 30, "title": "the first"}
{"prompt": "abcd efgh mnop", "max_tokens": 30, "n": 2, "seed": 1, "arrive_step": 3}
{"prompt": [5, 6, 7], "max_tokens": 20, "arrive_step": 1000}
"""
POOL = ["--blocks", "14", "--host-blocks", "4", "--block-size", "4"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work.jsonl").write_text(WORK)
    return tmp_path / "work.jsonl"


def test_in_a_pipe_a_workload_is_run_and_summed_up(
    tiny_folder: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "run.trace"
    arguments = ["watch", "--model", str(tiny_folder), "--workload", str(work), "--record", str(record), *POOL]
    assert main(arguments) == 0
    shown, told = capsys.readouterr()
    assert told == "minipaged: no picture, since standard output is no terminal; the run is summed up instead\n"
    assert "\x1b" not in shown
    assert "3 requests, 4 sequences, 110 tokens drawn" in shown
    assert f"minipaged replay {record}" in shown
    with TraceReader(record) as reader:
        assert (reader.header.num_blocks, reader.header.num_host_blocks, reader.header.block_size) == (14, 4, 4)
        moments = [reader.moment(index) for index in range(len(reader))]
    assert len(moments) < 200, "nobody waits a thousand steps for an idle engine"
    titles = {state.title for moment in moments for state in (*moment.running, *moment.waiting)}
    assert titles == {"the first", "abcd efgh mnop", "3 token ids"}
    first = [min(s.sequence for s in m.running) for m in moments[:3] if m.running]
    assert first == [0, 0, 0] and all(len(moment.running) == 1 for moment in moments[:3]), "the second comes at step 3"
    assert moments[-1].counts["held_blocks"] == 0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            '{"prompt": "x", "max_tokens": 60}',
            "workload, line 1: request 0 needs 60 token slots (prompt 1 + max_tokens 60 - 1), above the 56 token slots "
            "the pool can give it; give --blocks 15 or more",
        ),
        ('{"prompt": [1, 99999999]}', "line 1: token id 99999999 is above"),
        ('{"prompt": "x", "colour": 1}', "line 1: SamplingParams: unknown option 'colour'"),
    ],
)
def test_a_request_that_cannot_be_run_is_refused_before_anything_is(
    tiny_folder: Path, tmp_path: Path, line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text(line)
    arguments = ["watch", "--model", str(tiny_folder), "--workload", str(tmp_path / "bad.jsonl"), *POOL]
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert complaint in output.err and output.err.count("\n") == 1
    assert "steps:" not in output.out


@pytest.mark.parametrize("other", [[], ["--against", "no-sharing"]])
def test_a_pool_too_small_for_the_built_in_workload_says_how_many_blocks_it_needs(
    other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody who gave no workload is told of its lines; what is told to be enough, is."""
    assert main(["watch", "--blocks", "8", *other]) == 2
    told = capsys.readouterr().err
    assert told.startswith("minipaged: the built-in workload: request 0 needs") and told.count("\n") == 1
    match = re.search(r"give --blocks (\d+) or more$", told)
    assert match is not None
    enough = int(match[1])
    llm, arrivals = LLM("tiny-gpt", num_blocks=enough, block_size=8), read_workload(BUILT_IN)
    assert not Feed(llm, arrivals).is_done
    with pytest.raises(ValueError, match=f"give --blocks {enough} or more"):
        Feed(LLM("tiny-gpt", num_blocks=enough - 1, block_size=8), arrivals)


def test_regions_that_are_powers_of_two_need_a_larger_pool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--blocks", "15", "--against", "buddy"]) == 2  # 120 slots, and 64 in a row
    assert capsys.readouterr().err.endswith("above the 64 token slots the pool can give it; give more --blocks\n")


def test_a_workload_is_not_overwritten_by_its_own_trace(
    tiny_folder: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["watch", "--model", str(tiny_folder), "--workload", str(work), "--record", str(work), *POOL]
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"minipaged: watch: --record {work} is the workload itself; name another file\n"
    assert work.read_text() == WORK


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "fast"])
def test_what_is_no_speed(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--speed", speed]) == 2
    error = f"minipaged: --speed is {speed!r}; it must be steps per second, above 0, such as 8\n"
    assert capsys.readouterr().err == error


def test_control_c_sums_up_what_ran(
    tiny_folder: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Feed.step

    def struck(self: Feed) -> bool:
        if self._llm.engine.scheduler.num_steps == 7:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Feed, "step", struck)
    record = tmp_path / "run.trace"
    arguments = ["watch", "--model", str(tiny_folder), "--workload", str(work), "--record", str(record), *POOL]
    assert main(arguments) == 130
    shown = capsys.readouterr().out
    assert "Interrupted. Until then:\n7 steps: 2 requests" in shown
    assert shown.endswith(f"See it again: minipaged replay {record}\n")
    with TraceReader(record) as reader:
        assert len(reader) == 7


# Replay ---------------------------------------------------------------------------------------------------------------


def test_a_trace_is_summed_up_without_torch(trace_path: Path) -> None:
    code = f"import sys, minipaged.cli as c; c.main(['replay', {str(trace_path)!r}]); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "6 requests, 8 sequences" in result.stdout
    assert result.stdout.splitlines()[-1] == "False"


def test_a_step_as_text(trace_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ([], ["--width", "80", "--height", "24"]):
        arguments = ["replay", str(trace_path), "--text", "--step", "20", "--panel", "tables", "--follow", "E", *size]
        assert main(arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("step 20 of 0 to 42 ") and "[tables]" in lines[0] and "following E" in lines[1]
        assert all(len(line) <= (80 if size else 120) for line in lines) and len(lines) <= (24 if size else 40)


def test_pictures_and_pages_are_written(trace_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, html = tmp_path / "step.svg", tmp_path / "run.html"
    assert main(["replay", str(trace_path), "--step", "20", "--svg", str(svg), "--html", str(html)]) == 0
    assert capsys.readouterr().out == f"wrote {svg}\nwrote {html}\n"
    text = svg.read_text(encoding="utf-8")
    assert text.startswith("<svg") and "device" in text and "minipaged,&#160;step&#160;20" in text
    assert "url(http" not in text and "font-face" not in text, "it asks nobody for a font"
    assert "a simulated model" in html.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--step", "1000"], "no step 1000 in this trace; its steps are 0 to "),
        (["--step", "-1"], "no step -1"),
        (["--text", "--width", "-3"], "--width is -3"),
        (["--text", "--height", "0"], "--height is 0"),
        (
            ["--panel", "cellar"],
            "replay: --panel is 'cellar'; it must be one of overview, blocks, tables, ",
        ),
        (["--follow", "24"], "there is no block 24"),
        (["--follow", "?"], "--follow is '?'"),
        (["--html", "/no/such/folder/x.html"], "cannot be written"),
    ],
)
def test_what_replay_refuses(
    trace_path: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(trace_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1


@pytest.mark.parametrize("option", ["--svg", "--html"])
def test_a_trace_is_not_overwritten_by_its_own_picture(
    trace_path: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "run.trace"
    copy.write_bytes(trace_path.read_bytes())
    (tmp_path / "link").symlink_to(copy)
    for file in (copy, tmp_path / "link"):
        assert main(["replay", str(copy), option, str(file)]) == 2
        assert capsys.readouterr().err == f"minipaged: replay: {file} is the trace itself; name another file\n"
    assert copy.read_bytes() == trace_path.read_bytes()


def test_a_trace_cannot_send_a_terminal_what_it_wants(
    trace_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, rest = trace_path.read_text().split("\n", 1)
    evil = json.dumps({**json.loads(header), "description": "a \x1b]0;title\x07 model\nof two lines"})
    (tmp_path / "evil").write_text(f"{evil}\n{rest}")
    assert main(["replay", str(tmp_path / "evil")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "a  ]0;title  model of two lines"


def test_what_is_no_trace_is_refused_and_a_cut_off_line_told(
    trace_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "cut").write_bytes(trace_path.read_bytes()[:-20])
    assert main(["replay", str(tmp_path / "cut")]) == 0
    output = capsys.readouterr()
    assert "the last line is cut off" in output.err and "42 steps" in output.out
