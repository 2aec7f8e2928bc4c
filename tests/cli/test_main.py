"""The command line as such: what it imports, its exit statuses, and that it never shows a traceback to a user."""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from minipaged import LLM, __version__, cli
from minipaged.cli.options import add_engine_options, engine_options, parse_bytes, settle_threads
from minipaged.config import EngineConfig


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "minipaged", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload]


def test_help_is_quick_because_it_imports_nothing() -> None:
    heavy = "{'torch', 'numpy', 'rich'}"
    code = f"import sys, minipaged.cli as c; c.main(['--help']); print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout.splitlines()[-1] == "[]"
    for command in ("demo", "watch", "replay", "generate", "doctor", "bench"):
        assert f"\n    {command}" in result.stdout


@pytest.mark.parametrize("command", ["demo", "watch", "generate", "doctor"])
def test_a_commands_help_does_not_wait_for_torch(command: str) -> None:
    code = f"import sys, minipaged.cli as c; c.main(['{command}', '--help']); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout.splitlines()[-1] == "False"
    assert "--model" in result.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"minipaged {__version__}\n"


def test_nothing_asked_for_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["generate"],
        ["generate", "x", "--no-such-option"],
        ["generate", "x", "--max-tokens", "many"],
        ["bench", "no-such-benchmark"],
    ],
)
def test_what_argparse_refuses_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "x", "--model", "/no/such/folder"], "neither a folder nor shipped"),
        (["generate", "x", "--temperature", "-1"], "temperature is -1.0"),
        (["generate", "x", "--max-tokens", "0"], "max_tokens is 0"),
        (["generate", "x", "-n", "0"], "n is 0"),
        (["demo", "--num-blocks", "0"], "--num-blocks is 0"),
        (["demo", "--requests", "-3"], "--requests is -3"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("minipaged: ") and output.err.count("\n") == 1
    assert message in output.err


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "minipaged.llm", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(["demo"]) == 1
    assert (
        capsys.readouterr().err == "minipaged: rich.console is not installed; `minipaged doctor` says how to get it\n"
    )


def test_interrupted_is_130_without_a_traceback(random_model: Path) -> None:
    arguments = ["generate", "x", "--model", str(random_model), "--max-tokens", "4000", "--ignore-eos"]
    process = subprocess.Popen(
        [sys.executable, "-m", "minipaged", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # As from a shell; under a test runner that was started in the background, the signal may be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.read(1)  # words come: it is at work
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.decode().strip() == ""


@pytest.mark.parametrize(
    "arguments", [["generate", "x", "--max-tokens", "4000", "--ignore-eos"], ["demo", "--requests", "4"]], ids=str
)
def test_a_reader_that_leaves_is_no_error(random_model: Path, arguments: list[str]) -> None:
    arguments = [*arguments, "--model", str(random_model)]
    process = subprocess.Popen(
        [sys.executable, "-m", "minipaged", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read().decode() == ""
    assert process.wait(timeout=30) == 141


def test_a_terminal_that_knows_only_ascii_gets_something(random_model: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = run("generate", "你", "好", "--model", str(random_model), "--max-tokens", "2", env=environment)
    assert result.returncode == 0
    assert "> \\u4f60" in result.stdout


def test_every_field_of_the_engines_config_has_an_option() -> None:
    parser = argparse.ArgumentParser()
    add_engine_options(parser)
    fields = {field.name for field in dataclasses.fields(EngineConfig)}
    assert fields - set(vars(parser.parse_args([]))) == {"seed"}  # the requests' --seed is the one that matters
    assert engine_options(parser.parse_args([])) == {}
    given = engine_options(parser.parse_args(["--num-blocks", "7", "--no-share-prefixes", "--dtype", "bfloat16"]))
    assert given == {"num_blocks": 7, "share_prefixes": False, "dtype": "bfloat16"}
    assert EngineConfig.from_dict(given).num_blocks == 7


def test_benchmarks_are_found_by_their_modules_names(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("minipaged.cli.bench_loops", "How long a loop takes.\n\nMore.")
    vars(module).update(
        add_arguments=lambda parser: parser.add_argument("--rounds", type=int), run=lambda args: args.rounds
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = [types.SimpleNamespace(name=name) for name in ("bench", "bench_loops", "demo")]
    monkeypatch.setattr("pkgutil.iter_modules", lambda path: names)
    assert cli.main(["bench", "loops", "--rounds", "7"]) == 7


@pytest.mark.parametrize(("asked_for", "threads"), [(None, 1), ("2", 2), ("1", 1), ("many", 1)])
def test_a_small_model_runs_on_one_thread_unless_told_otherwise(
    random_model: Path, monkeypatch: pytest.MonkeyPatch, asked_for: str | None, threads: int
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked_for is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked_for)
    settle_threads(LLM(random_model, num_blocks=1))
    assert torch.get_num_threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    settle_threads(LLM(random_model, num_blocks=1))


@pytest.mark.parametrize(
    ("text", "number"), [("4096", 4096), ("512k", 2**19), ("64MiB", 2**26), ("1.5G", 3 * 2**29), ("2 gb", 2**31)]
)
def test_sizes(text: str, number: int) -> None:
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "many", "-1", "1TB", "1.2.3M"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size"):
        parse_bytes(text)
