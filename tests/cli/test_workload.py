"""Workloads: lines become requests in their order of arrival, and a bad line is refused by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from minipaged.cli.workload import BUILT_IN, parse_workload, read_workload
from minipaged.sampling_params import SamplingParams


def test_lines_become_requests_in_their_order_of_arrival() -> None:
    arrivals = parse_workload(
        [
            '{"prompt": "What is\\ntea?", "arrive_step": 7, "n": 2, "max_tokens": 5, "seed": 3}',
            "",
            '{"prompt": "你好", "arrive_step": 2, "temperature": 1.5, "stop": "\\n", "title": "hello"}',
            '{"prompt": [5, 0, 7], "arrive_step": 7}',
        ]
    )
    assert [arrival.title for arrival in arrivals] == ["hello", "What is tea?", "3 token ids"]
    assert [arrival.arrive_step for arrival in arrivals] == [2, 7, 7]
    assert [arrival.prompt for arrival in arrivals] == ["你好", "What is\ntea?", (5, 0, 7)]
    assert [arrival.params for arrival in arrivals] == [
        SamplingParams(temperature=1.5, stop=("\n",)),
        SamplingParams(n=2, max_tokens=5, seed=3, temperature=0.8),
        SamplingParams(temperature=0),
    ]
    assert [arrival.origin for arrival in arrivals] == ["workload, line 3", "workload, line 1", "workload, line 4"]


def test_a_line_ends_with_its_line_feed_alone(tmp_path: Path) -> None:
    """Not at what may stand in a JSON text; and a mark at the beginning of the file is no part of it."""
    path = tmp_path / "work.jsonl"
    path.write_bytes('\ufeff{"prompt": "one\u2028two\x85three"}\r\n\r\n{"prompt": "four"}\r\n'.encode())
    arrivals = read_workload(path)
    assert [arrival.prompt for arrival in arrivals] == ["one\u2028two\x85three", "four"]
    assert [arrival.origin for arrival in arrivals] == ["workload, line 1", "workload, line 3"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "it is not JSON"),
        ("[1, 2]", "it is [1, 2]; it must be an object"),
        ("[" * 100_000, "it is nested too deeply"),
        ("# not yet", "it is not JSON"),
        ('{"prompt": "x", "prompt": "y"}', "it says 'prompt' twice"),
        ("{}", "it has no prompt; it has []"),
        ('{"promt": 1}', 'it has no prompt; it has ["promt"]'),
        ('{"prompt": null}', "the prompt is null"),
        ('{"prompt": ""}', 'the prompt is ""'),
        ('{"prompt": []}', "the prompt is []"),
        ('{"prompt": [1, -1]}', "the prompt is [1, -1]"),
        ('{"prompt": [1, true]}', "the prompt is [1, true]"),
        ('{"prompt": "\\ud800"}', "the prompt has a lone surrogate"),
        ('{"prompt": "x", "arrive_step": -1}', "arrive_step is -1"),
        ('{"prompt": "x", "arrive_step": 1.5}', "arrive_step is 1.5"),
        ('{"prompt": "x", "title": 3}', "the title is 3"),
        ('{"prompt": "x", "n": 0}', "n is 0"),
        ('{"prompt": "x", "n": "two"}', "n is 'two'"),
        ('{"prompt": "x", "max_token": 3}', "unknown option 'max_token'"),
        ('{"prompt": "x", "temperature": "hot"}', "temperature must be a number"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(line: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    path.write_text(f'{{"prompt": "fine"}}\n\n{line}\n')
    with pytest.raises(ValueError) as refused:
        read_workload(path)
    assert str(refused.value).startswith(f"the workload {path}: line 3: ") and complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_without_requests_and_one_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, complaint in (("empty", "it has no request"), ("bytes", "cannot be read"), ("none", "cannot be read")):
        with pytest.raises(ValueError, match=complaint):
            read_workload(tmp_path / name)


def test_the_built_in_workload_has_what_it_is_to_show() -> None:
    arrivals = read_workload(BUILT_IN)
    assert {arrival.arrive_step for arrival in arrivals} > {0}
    assert max(arrival.params.n for arrival in arrivals) > 1
    prompts = [arrival.prompt for arrival in arrivals]
    assert all(isinstance(prompt, str) for prompt in prompts)
    assert len(set(prompts)) < len(prompts), "someone asks what was asked before"
    assert all(arrival.params.temperature == 0 or arrival.params.seed is not None for arrival in arrivals), "repeatable"
