"""`--record`: the run that was asked for, in a file, with titles, from its first step to its last end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from minipaged import LLM, SamplingParams
from minipaged.cli import main
from minipaged.cli.contender import ours
from minipaged.cli.recording import recording, replay_hint
from minipaged.trace_file import TraceReader


def test_generate_records_every_step(random_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    arguments = ["hello  \n there", "你好", "--max-tokens", "9", "--num-blocks", "64", "--model", str(random_model)]
    assert main(["generate", *arguments, "--json"]) == 0
    without = capsys.readouterr()
    assert main(["generate", *arguments, "--json", "--record", str(path)]) == 0
    assert capsys.readouterr() == without, "what is printed is the same"
    answers = [json.loads(line)["answers"][0]["token_ids"] for line in without.out.splitlines()]
    with TraceReader(path) as trace:
        moments = [trace.moment(i) for i in range(len(trace))]
    assert [state.title for state in moments[0].running] == ["hello there", "你好"]
    assert moments[-1].running == moments[-1].waiting == ()
    for id, answer in enumerate(answers):
        assert [token for m in moments for of, token in m.record.drawn if of == id] == answer


def test_who_is_ended_by_a_stop_string_after_the_last_step_is_in_the_trace(random_model: Path, tmp_path: Path) -> None:
    """The engine is told after its step: one more, empty one has the end."""
    path = tmp_path / "run.jsonl"
    llm = LLM(random_model, num_blocks=64)
    text = llm.generate("hello", SamplingParams(max_tokens=9, temperature=0, ignore_eos=True))[0].outputs[0].text
    params = SamplingParams(max_tokens=20, temperature=0, ignore_eos=True, stop=[text[4:6]])
    with recording(llm, str(path)):
        (output,) = llm.generate("hello", params)
    assert output.outputs[0].finish_reason == "stop"
    with TraceReader(path) as trace:
        last = trace.moment(len(trace) - 1)
        assert last.running == ()
        assert [(event.kind, event.cause) for event in last.record.events] == [("finish", "stop")]
        assert last.record.chunks == ()
        assert trace.moment(len(trace) - 2).running != ()


def test_a_file_that_cannot_be_written_is_one_line(
    random_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nowhere" / "run.jsonl"
    assert main(["generate", "hello", "--model", str(random_model), "--num-blocks", "64", "--record", str(path)]) == 2
    assert capsys.readouterr() == ("", f"minipaged: trace {path}: it cannot be written: No such file or directory\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_does_not_cost_the_answer(
    random_model: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    arguments = ["generate", "hello", "--model", str(random_model), "--num-blocks", "64", "--max-tokens", "5"]
    assert main(arguments) == 0
    answer = capsys.readouterr().out
    assert main([*arguments, "--record", "/dev/full"]) == 1
    assert capsys.readouterr().out == answer
    assert [r.getMessage() for r in caplog.records if "trace" in r.getMessage()] == [
        "trace /dev/full: recording stopped before the first step: No space left on device"
    ]


def test_bench_throughput_records_our_run(random_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    serve = ours(str(random_model), {"dtype": "float32", "prompts": [[1, 2, 3]] * 3, "record": str(path)})
    assert serve([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [4, 5, 6]) == {"tokens": 15, "part_seconds": {}}
    with TraceReader(path) as trace:
        assert sum(len(trace.moment(i).record.drawn) for i in range(len(trace))) == 15


@pytest.mark.parametrize(
    ("argv", "typed"),
    [
        (".venv/bin/minipaged", ".venv/bin/minipaged"),
        ("/the house/bin/minipaged", "'/the house/bin/minipaged'"),
        ("/lib/python/minipaged/__main__.py", "some/python -m minipaged"),
        ("/lib/python/pytest/__main__.py", "minipaged"),
        ("-c", "minipaged"),
    ],
)
def test_the_hint_is_what_started_the_program(argv: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [argv])
    monkeypatch.setattr(sys, "orig_argv", ["some/python", "-m", "minipaged"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert replay_hint("my run") == f"See it again: {typed} replay 'my run'"


def test_the_hint_is_short_where_the_shell_finds_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "minipaged"
    program.touch()
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    assert replay_hint("run") == "See it again: minipaged replay run"
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path))
    assert replay_hint("run") == f"See it again: {program} replay run", "another one is on the path"


def test_generate_says_on_a_terminal_how_to_see_it_again(
    random_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    path = tmp_path / "run.trace"
    arguments = ["hello", "--max-tokens", "3", "--num-blocks", "64", "--model", str(random_model)]
    assert main(["generate", *arguments, "--record", str(path)]) == 0
    assert capsys.readouterr().err.endswith(f"See it again: minipaged replay {path}\n")
