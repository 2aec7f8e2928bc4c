"""Each benchmark runs, small, and its figures hang together. How large they are is nobody's business here."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from minipaged_kernels import backends

from minipaged import cli
from minipaged.cli import kernel_problems
from minipaged.cli.bench_recording import AIM_BYTES, MIN_ROUNDS
from minipaged.cli.bench_single import ANSWER_TOKENS
from minipaged.cli.bench_throughput import operations, workload
from minipaged.cli.random_checkpoint import SIZES, Size
from minipaged.trace_file import TraceReader


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    assert cli.main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_throughput_says_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "throughput", "--requests", "4", "--rounds", "1", "--parts")
    assert isinstance(found, dict)
    assert 0 < found["tokens_per_second"]["ours"] < found["limit"]
    parts = found["part_seconds"]
    assert {"matrices", "head", "attention", "write_kv", "norms", "sampler", "bookkeeping"} < set(parts)
    assert all(seconds > 0 for seconds in parts.values())
    generated = sum(workload(Size(1, 1, 1, 4096), 4, "float32")["lengths"])
    assert sum(parts.values()) < generated / found["tokens_per_second"]["ours"]  # of the time that was measured


def test_throughput_without_parts_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "throughput", "--requests", "4", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "ours" in shown and "limit at" in shown and "bookkeeping" not in shown


def test_a_single_stream_reads_its_weights(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "run.trace")
    found = figures(capsys, "single", "--size", "12.6M", "--rounds", "1", "--parts", "--record", path)
    assert isinstance(found, dict)
    assert found["share"] == pytest.approx(found["weight_gigabytes_per_second"] / found["copy_gigabytes_per_second"])
    weight_bytes = 4 * (SIZES["12.6M"].matrix_parameters + SIZES["12.6M"].head_parameters)
    assert found["weight_gigabytes_per_second"] == pytest.approx(weight_bytes / found["milliseconds"] / 1e6)
    assert {"matrices", "head", "attention", "bookkeeping"} < set(found["part_seconds"])
    with TraceReader(path) as trace:
        assert len(trace) == ANSWER_TOKENS  # the round's; the warm-up is not recorded
        assert trace.moment(len(trace) - 1).running == ()


def test_the_limit_counts_what_the_matrices_must_do() -> None:
    size = Size(num_layers=2, num_heads=1, width=4, vocab_size=10)
    work = {"prompts": [[1, 2]], "lengths": [2]}  # three tokens are computed, two drawn
    layers = 2 * 12 * 2 * 4 * 4 * 3
    head = 2 * 10 * 4 * 2
    attention = 4 * 4 * 2 * (1 + 2 + 3)
    assert operations(size, work) == layers + head + attention


def test_invariance_finds_no_bit_that_differs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "run.trace")
    found = figures(capsys, "invariance", "--rounds", "1", "--record", path)
    assert isinstance(found, dict)
    assert [case["different"] for case in found["cases"]] == [0] * len(found["cases"])
    assert {case["neighbours"] for case in found["cases"]} >= {1, 7, 31}
    assert any(case["preemptions"] for case in found["cases"])
    assert all(rate > 0 for rate in found["tokens_per_second"].values())
    with TraceReader(path) as trace:  # of the last case
        assert trace.header.num_blocks == found["cases"][-1]["blocks"] == 43
        events = [event.kind for index in range(len(trace)) for event in trace.moment(index).record.events]
    assert events.count("preempt") >= found["cases"][-1]["preemptions"] > 0
    assert events.count("finish") == 1 + found["cases"][-1]["neighbours"]


@pytest.mark.parametrize("name", ["single", "invariance", "throughput"])
def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_measured(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nowhere" / "run.trace"
    assert cli.main(["bench", name, "--record", str(path)]) == 2
    assert capsys.readouterr() == ("", f"minipaged: trace {path}: it cannot be written: No such file or directory\n")


def test_recording_counts_bytes_and_hangs_together(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--models", "tiny-gpt", "--sequences", "1", "64", "--seconds", "0.01")
    found = figures(capsys, "recording", *arguments)
    assert isinstance(found, list)
    one, many = found
    assert [(row["model"], row["sequences"]) for row in found] == [("tiny-gpt", 1), ("tiny-gpt", 64)]
    for row in found:
        assert 0 < row["recorder_milliseconds"] < row["milliseconds_with"]
        assert row["milliseconds_without"] > 0 and row["slowdown"] > -1 and row["noise"] >= 0
        assert row["rounds"] >= MIN_ROUNDS
    assert 60 < one["bytes_per_step"] < 200, "the step, its time, its slots and a token"
    assert one["bytes_per_step"] + 63 * 3 < many["bytes_per_step"] <= AIM_BYTES, "a token each, and a comma"


def test_recording_keeps_to_its_bytes_with_small_blocks_too(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--models", "tiny-gpt", "--sequences", "64", "--seconds", "0.01", "--block-size", "4")
    assert cli.main(["bench", "recording", *arguments]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The aim is at most 5% in each row: " in shown
    assert "With 64 sequences it is at most 2,048 bytes a step: met, the most is 1," in shown


@pytest.mark.parametrize(
    ("option", "value", "least"),
    [("--sequences", "0", "at least 1"), ("--seconds", "0", "above 0"), ("--seconds", "nan", "above 0")],
)
def test_recording_refuses(option: str, value: str, least: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "recording", option, value]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith(f"minipaged: bench recording: {option} ") and f"must be {least}" in error


def test_kernels_counts_bytes_for_every_backend(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("kernels", "--heads", "2", "--head-dim", "16", "--contexts", "32", "--sequences", "2")
    found = figures(capsys, *arguments, "--dtype", "float32")
    assert isinstance(found, dict)
    copied = found["copy_gigabytes_per_second"]
    decodes = [result for result in found["results"] if result["kind"] == "decode"]
    assert {result["backend"] for result in decodes} >= {"reference", "cpu"}
    for result in decodes:
        moved = 2 * (2 * 32 * 2 * 16 + 2 * 2 * 16) * 4 / 1e9  # K, V, query and result of two sequences
        assert result["gigabytes_per_second"] == pytest.approx(moved / result["milliseconds"] * 1e3)
        assert result["share"] == pytest.approx(result["gigabytes_per_second"] / copied)


OWN = """
from minipaged_kernels import reference
def paged_attention(query, *others):
    return reference.paged_attention(query, *others) + ERROR
"""


def test_kernels_takes_a_backend_of_your_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN.replace("ERROR", "0"), encoding="utf-8")
    sizes = ("--heads", "2", "--head-dim", "16", "--contexts", "32", "--sequences", "2", "--dtype", "float32")
    found = figures(capsys, "kernels", *sizes, "--backend", "reference", str(file))
    assert isinstance(found, dict)
    assert [result["backend"] for result in found["results"]] == ["reference", "mine", "mine"], "and its prefill"


@pytest.mark.parametrize("error", ["0", "1e-4", "float('nan')"])
def test_kernels_compares_it_with_the_oracle(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for axis, kept in (("HEADS", 1), ("HEAD_DIMS", 1), ("BLOCK_SIZES", 2), ("DTYPES", 1)):
        monkeypatch.setattr(kernel_problems, axis, getattr(kernel_problems, axis)[:kept])
    monkeypatch.setattr(kernel_problems, "MIXES", (((2, 5), (1, 9)),))
    file = tmp_path / "mine.py"
    file.write_text(OWN.replace("ERROR", error), encoding="utf-8")
    right = error == "0"
    assert cli.main(["bench", "kernels", "--full", "--backend", str(file)]) == (0 if right else 1)
    assert f"mine: 2 shapes compared with the oracle, {0 if right else 2} wrong" in capsys.readouterr().out


def test_a_backend_may_have_dataclasses(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text += "@dataclass\nclass Size:\n    rows: int\n"
    file.write_text(text + OWN.replace("ERROR", "0"), encoding="utf-8")
    assert backends.from_file(file).name == "mine"


@pytest.mark.parametrize("name", backends.NAMES)
def test_a_file_is_not_taken_for_one_of_ours(name: str, tmp_path: Path) -> None:
    """Rows of one name could not be told apart, and the reference is left out of some."""
    (tmp_path / f"{name}.py").write_text(OWN.replace("ERROR", "0"), encoding="utf-8")
    with pytest.raises(ValueError, match="another name"):
        backends.from_file(tmp_path / f"{name}.py")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "x = 1",
        "1 / 0",
        "def f(:",
        "raise SystemExit(0)",  # which would pass for a measurement that went well
        "paged_attention = 3",
        "def write_kv(*given): ...",  # what is measured and compared would be the reference
    ],
)
def test_kernels_refuses_a_file_that_is_no_backend(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    for name in (str(tmp_path / "mine.py"), "none"):
        assert cli.main(["bench", "kernels", "--backend", name]) == 2
        error = capsys.readouterr().err
        assert error.startswith("minipaged: bench kernels: ") and len(error.splitlines()) == 1


def test_memory_and_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    (books,) = figures(capsys, "memory", "--books", "--sizes", "200")  # type: ignore[misc]
    assert books["num_blocks"] == 200
    assert min(books[f"{name}_per_second"] for name in ("allocated", "evicted", "swapped")) > 0
    found = figures(capsys, "scheduler", "--running", "4", "8")
    assert len(found) == 2  # type: ignore[arg-type]


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 2
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  ")}
    assert {"kernels", "memory", "scheduler", "throughput"} <= listed.keys()
    assert all(len(summary) > 20 and summary.endswith(".") for summary in listed.values())


AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:{second:02}.9799600,{100 + second},{1 + second % 7}\n" for second in range(40)
)


def test_serving_replays_a_trace_for_each_policy_order_and_rate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace, chart = tmp_path / "azure.csv", tmp_path / "chart.svg"
    trace.write_text(AZURE)
    arguments = ("--policy", "static", "paged", "--order", "fcfs", "shortest", "--rate", "5", "50", "--svg", str(chart))
    found = figures(capsys, "serving", "--trace", str(trace), *arguments)
    assert isinstance(found, list)
    names = ["static fcfs", "static shortest", "paged fcfs", "paged shortest"]
    assert [(row["name"], row["rate"]) for row in found] == [(name, rate) for name in names for rate in (5, 50)]
    for row in found:
        assert row["num_finished"] == row["num_requests"] == 40
        assert row["prompt_tokens"] == sum(range(100, 140)) and row["seconds"] > 39 / row["rate"]
    svg = ElementTree.fromstring(chart.read_text())
    lines = [element for element in svg.iter() if element.tag.endswith("polyline")]
    assert len(lines) == 4
    assert {text.text for text in svg.iter() if text.tag.endswith("text")} >= {"static fcfs", "paged shortest"}


def test_serving_prints_tables_that_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("--requests", "30", "--policy", "reserve-oracle", "paged", "--order", "fcfs", "patient", "--costs")
    assert cli.main(["bench", "serving", *arguments, "--close-limits"]) == 0
    shown = capsys.readouterr().out
    expected = (
        "Latency",
        "Work",
        "Memory",
        "Short and long",
        "data sheet",
        "kv_bytes_per_token",
        "819,200",
        "one core",
    )
    assert [words for words in expected if words not in shown] == []
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    assert shown.count("reserve-oracle") == 8 and shown.count("patient") == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--requests", "0"), "bench serving: --requests is 0; it must be at least 1"),
        (
            ("--requests", "9" * 30),
            "--requests is 999999999999999999999999999999; it must be at least 1 and at most 1000",
        ),
        (("--rate", "0"), "bench serving: --rate is 0.0; it must be at least 1e-06 and at most 1000000"),
        (("--rate", "1", "nan"), "--rate is nan; it must be"),
        (("--rate", "inf"), "--rate is inf; it must be"),
        (("--rate", "1e-320"), "--rate is 1e-320; it must be"),
        (
            ("--slots", "5"),
            "bench serving: --slots is 5; it must be at least 16, a block of --block-size, and at most 64000000",
        ),
        (("--slots", "100000000000"), "--slots is 100000000000; it must be at least 16,"),
        (("--slots", "31", "--block-size", "32", "--policy", "static"), "--slots is 31; it must be at least 32,"),
        (("--block-size", "15729"), "bench serving: --block-size is 15729; it must be at least 1 and at most 15728"),
        (("--host-slots", "-1"), "--host-slots is -1; it must be 0, for no host pool, or at least 16"),
        (
            ("--host-slots", "15", "--policy", "paged-swap"),
            "--host-slots is 15; it must be 0, for no host pool, or at least 16",
        ),
        (("--max-batch-tokens", "0"), "bench serving: --max-batch-tokens is 0; it must be at least 1"),
        (("--max-sequences", "0"), "bench serving: --max-sequences is 0; it must be at least 1"),
        (
            ("--max-sequences", "2049"),
            "--max-sequences is 2049; it must be at most 2048, the tokens in a step of --policy",
        ),
        (("--max-sequences", "600", "--policy", "paged", "chunked"), "it must be at most 512, the tokens in a step of"),
        (("--trace", "nowhere.csv"), "traffic nowhere.csv: it cannot be read: No such file"),
        (("--svg", "nowhere/chart.svg"), "there is no folder nowhere"),
        (("--svg", "."), "--svg .: it is a folder; it must be a file's name"),
        (("--block-size", "0"), "--block-size is 0"),
        (("--slots", "0"), "--slots is 0; it must be at least 1"),
        (("--host-slots", "100000000001", "--policy", "paged-swap"), "--host-slots is 100000000001"),
    ],
)
def test_serving_refuses(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "serving", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == "" and message in error and error.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
@pytest.mark.parametrize("option", ["--json", "--close-limits"])
def test_serving_on_a_full_disk_keeps_its_figures(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "serving", "--requests", "3", "--svg", "/dev/full", option]) == 2
    out, error = capsys.readouterr()
    assert "paged" in out and error.count("\n") == 1
    assert error == "minipaged: bench serving: --svg /dev/full: it cannot be written: No space left on device\n"


def test_serving_does_not_promise_that_a_rate_would_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text("".join(AZURE.splitlines(keepends=True)[:2]))
    assert cli.main(["bench", "serving", "--trace", str(trace), "--rate", "2"]) == 2
    assert capsys.readouterr().err.endswith("is not known; it takes two, one after the other\n")


def test_hits_are_counted_for_each_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "mooncake.jsonl"
    lines = [{"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, last]} for last in (2, 3, 2)]
    trace.write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = figures(capsys, "hits", "--trace", str(trace), "--blocks", "0", "3")
    assert isinstance(found, list)
    assert [(row["blocks"], row["num_blocks"], row["num_found"], row["num_last"]) for row in found] == [
        (0, 9, 4, 1), (3, 9, 4, 0)
    ]  # fmt: skip
    assert found[0]["rate"] == pytest.approx(5 / 9)
    assert cli.main(["bench", "hits", "--trace", str(trace)]) == 0
    shown = capsys.readouterr().out
    assert "no end" in shown and "0.5556" in shown and "0.4444" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--requests", "0"), "bench hits: --requests is 0; it must be at least 1 and at most 1000000000"),
        (("--requests", "9" * 30), "bench hits: --requests is 999"),
        (("--blocks", "0", "-1"), "bench hits: --blocks is -1; it must be at least 0 and at most 4000000"),
        (("--blocks", "1000000000000"), "bench hits: --blocks is 1000000000000; it must be at least 0"),
        (
            ("--blocks", "5", "2"),
            "bench hits: --blocks is 2; it must be at least 3, the blocks of the longest prompt, or 0",
        ),
    ],
)
def test_hits_refuses(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = tmp_path / "mooncake.jsonl"
    trace.write_text(json.dumps({"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, 2]}))
    assert cli.main(["bench", "hits", "--trace", str(trace), *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == "" and message in error and error.count("\n") == 1
