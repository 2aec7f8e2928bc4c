"""Recorded and made traffic: times, lengths, and which prompts have anything in common."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, median

import pytest

from minipaged.traffic import (
    ALPACA,
    SHAREGPT,
    Lengths,
    Mix,
    TimedRequest,
    at_speed,
    closely_limited,
    mean_rate,
    poisson,
    read_azure,
    read_mooncake,
    read_traffic,
)

SHARED = Path(os.environ.get("MINIPAGED_SHARED", Path(__file__).parent.parent.parent / "shared")) / "traces"
MOONCAKE = SHARED / "mooncake_conversation_trace.jsonl"
with_traces = pytest.mark.skipif(not MOONCAKE.is_file(), reason="the traces are not here; MINIPAGED_SHARED says where")

AZURE_LINES = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4,10
2023-11-16 18:17:04.0319600,3,8
2023-11-16 18:18:04.0319600,1,1
"""


def test_azure_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(AZURE_LINES)
    requests = list(read_traffic(path))
    assert [request.arrival_seconds for request in requests] == pytest.approx([0, 0.052, 60.052])
    assert [(len(request.prompt_token_ids), request.num_output) for request in requests] == [(4, 10), (3, 8), (1, 1)]
    assert len({request.prompt_token_ids[0] for request in requests}) == 3, "no two share a beginning"


def mooncake_line(timestamp: float, length: int, hashes: object) -> str:
    return json.dumps({"timestamp": timestamp, "input_length": length, "output_length": 600, "hash_ids": hashes})


def test_mooncake_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(mooncake_line(0, 1000, [0, 1]) + "\n" + mooncake_line(1500, 1100, [0, 1, 2]) + "\n")
    one, other = read_traffic(path)
    assert (one.arrival_seconds, other.arrival_seconds) == (0, 1.5)
    assert [len(request.prompt_token_ids) for request in (one, other)] == [1000, 1100]
    assert other.prompt_token_ids[:1000] == one.prompt_token_ids, "equal hashes are equal tokens"
    assert other.prompt_token_ids[1024] != one.prompt_token_ids[512]
    one, other = read_mooncake(path, tokens_per_hash=1)
    assert one.prompt_token_ids == other.prompt_token_ids[:2] and len(other.prompt_token_ids) == 3
    assert one.num_output == 2, "600 tokens are two pieces"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,4\n", "a.csv, line 2: it must be CSV"),
        ("a.csv", AZURE_LINES + "2023-11-16 18:19:04,0,1\n", "line 5: .*lengths 0 and 1"),
        ("a.csv", AZURE_LINES + "yesterday,1,1\n", "line 5: "),
        ("m.jsonl", mooncake_line(0, 1000, [0]) + "\n", "line 1: .*1 hashes for 1000 tokens"),
        ("m.jsonl", mooncake_line(0, 10, [0]) + "\n[]\n", "line 2: it must be JSON with timestamp"),
        ("m.jsonl", "{\n", "line 1: "),
        ("m.jsonl", "[" * 100_000 + "\n", "line 1: .*RecursionError"),
        ("m.jsonl", '{"timestamp": 0, "input_length": Infinity}\n', "line 1: "),
        ("m.jsonl", '{"timestamp": 0, "input_length": 9, "output_length": Infinity}\n', "line 1: .*OverflowError"),
        ("m.jsonl", mooncake_line(10**400, 10, [0]) + "\n", "line 1: .*OverflowError"),
        ("m.jsonl", mooncake_line(10, 10**400, [0]) + "\n", "line 1: .*lengths 10000"),
        ("m.jsonl", mooncake_line(-1, 10, [0]) + "\n", "line 1: .*it comes at -0.001 seconds"),
        ("m.jsonl", mooncake_line(float("nan"), 10, [0]) + "\n", "line 1: .*it comes at nan seconds"),
        ("m.jsonl", mooncake_line(float("inf"), 10, [0]) + "\n", "line 1: .*it comes at inf seconds"),
        (
            "m.jsonl",
            mooncake_line(9, 10, [0]) + "\n" + mooncake_line(8, 10, [0]) + "\n",
            "line 2: .*before it at",
        ),
        ("a.csv", AZURE_LINES + "2023-11-16 18:17:05,1,1\n", "line 5: .*it comes at 1.02004 seconds"),
        ("a.csv", AZURE_LINES + "2023-11-16 18:19:04,1000000000000,1\n", "line 5: .*at most 16777216"),
        ("a.csv", AZURE_LINES + f"2023-11-16 18:19:04,1{'0' * 40},1\n", "line 5: .*at most 16777216"),
        *(
            ("m.jsonl", mooncake_line(0, 600, hashes) + "\n", "line 1: .*hash_ids must be whole numbers")
            for hashes in ([0, 1.5], [0, -1], [0, True], [0, 2**62], [0, None], "ab", {"a": 1, "b": 2})
        ),
    ],
)
def test_a_line_that_is_no_request_is_refused_by_its_number(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        list(read_traffic(path))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500 + len(str(path))


@pytest.mark.parametrize("name", ["none.csv", "none.jsonl"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="it cannot be read: No such file"):
        list(read_traffic(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", ""), ("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"), ("a.jsonl", "")]
)
def test_a_file_without_a_request_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{name}: it has no request; it must be"):
        list(read_traffic(path))


@with_traces
@pytest.mark.parametrize(
    ("name", "count", "seconds", "mean_prompt", "median_prompt", "mean_output"),
    [
        ("AzureLLMInferenceTrace_conv.csv", 19_366, 3502, 1154.7, 1020, 211.1),
        ("AzureLLMInferenceTrace_code.csv", 8_819, 3436, 2047.8, 1469, 27.9),
    ],
)
def test_azure_files_are_read_to_the_end(
    name: str, count: int, seconds: float, mean_prompt: float, median_prompt: float, mean_output: float
) -> None:
    prompts, outputs, last = [], [], -1.0
    for request in read_azure(SHARED / name):
        prompts.append(len(request.prompt_token_ids))
        outputs.append(request.num_output)
        assert request.arrival_seconds >= last
        last = request.arrival_seconds
    assert len(prompts) == count and last == pytest.approx(seconds, abs=1)
    assert fmean(prompts) == pytest.approx(mean_prompt, abs=0.05) and median(prompts) == median_prompt
    assert fmean(outputs) == pytest.approx(mean_output, abs=0.05)


@with_traces
def test_the_mooncake_file_is_read_to_the_end() -> None:
    requests = list(read_mooncake(MOONCAKE, tokens_per_hash=1))
    names = [name for request in requests for name in request.prompt_token_ids]
    assert (len(requests), len(names), len(set(names))) == (12_031, 288_500, 182_790)
    assert fmean(len(request.prompt_token_ids) for request in islice(read_mooncake(MOONCAKE), 500)) > 5000


@pytest.mark.parametrize("mix", [SHAREGPT, ALPACA])
def test_made_requests_have_the_rate_and_the_means(mix: Mix) -> None:
    requests = list(islice(poisson(mix, 4.0, seed=3, num_priorities=3), 20_000))
    assert mean_rate(iter(requests)) == pytest.approx(4.0, rel=0.03)
    assert fmean(len(request.prompt_token_ids) for request in requests) == pytest.approx(mix.mean_prompt, rel=0.03)
    assert fmean(request.num_output for request in requests) == pytest.approx(mix.mean_output, rel=0.03)
    gaps = [b.arrival_seconds - a.arrival_seconds for a, b in pairwise(requests)]
    assert fmean(gap > 0.25 for gap in gaps) == pytest.approx(0.368, abs=0.02), "e^-1 of the gaps are above their mean"
    assert {request.priority for request in requests} == {0, 1, 2}
    assert 900 < max(request.num_output for request in requests) <= 1024
    assert min(request.num_output for request in requests) >= 1


def test_the_same_requests_come_at_every_rate() -> None:
    slow, fast = (list(islice(poisson(SHAREGPT, rate, seed=1), 50)) for rate in (1.0, 2.0))
    assert [request.arrival_seconds / 2 for request in slow] == pytest.approx([r.arrival_seconds for r in fast])
    assert [(r.prompt_token_ids, r.num_output) for r in slow] == [(r.prompt_token_ids, r.num_output) for r in fast]
    again = list(islice(poisson(SHAREGPT, 1.0, seed=1), 50))
    assert again == slow and list(islice(poisson(SHAREGPT, 1.0, seed=2), 50)) != slow
    assert [request.arrival_seconds for request in at_speed(iter(slow), 2.0)] == pytest.approx(
        [request.arrival_seconds for request in fast]
    )


def test_close_limits_are_the_next_power_of_two() -> None:
    traffic = (TimedRequest(0.0, (1,), n) for n in (1, 2, 3, 4, 5, 1024))
    assert [request.max_tokens for request in closely_limited(traffic)] == [1, 2, 4, 4, 8, 1024]


def test_traffic_takes_no_more_memory_the_longer_it_is(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(AZURE_LINES + "2023-11-16 18:19:04.0319600,500,1\n" * 20_000)

    def peak(traffic: Callable[[], Iterator[TimedRequest]], count: int) -> int:
        for _ in islice(traffic(), 10):  # what is loaded once
            pass
        tracemalloc.start()
        for _ in islice(traffic(), count):
            pass
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    for traffic in (lambda: read_azure(path), lambda: poisson(SHAREGPT, 1.0)):
        assert peak(traffic, 8000) < 1.3 * peak(traffic, 1000) + 20_000


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="poisson: rate is"):
        next(poisson(SHAREGPT, rate))
    with pytest.raises(ValueError, match="at_speed: speed is"):
        at_speed(iter(()), rate)


def test_impossible_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="mean is 2000; it must be at least 1 and below the longest, 1024"):
        Lengths(2000)
    with pytest.raises(ValueError, match="the rate of 1 requests in 0.0 seconds is not known"):
        mean_rate(iter([TimedRequest(5.0, (1,), 1)]))
