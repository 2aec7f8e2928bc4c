"""`minipaged demo`: four ways that do the same work, a picture that fits its terminal, figures that add up."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from minipaged.cli import main, scoreboard
from minipaged.cli.agreement import Agreement
from minipaged.cli.demo_prompts import DEMO_PROMPTS, SHOWN_TITLES
from minipaged.cli.four_ways import Score
from minipaged.model.plain_loop import PlainAnswer
from minipaged.plan import Draw
from tests.cli.conftest import needs_shipped_model

SMALL = ["--requests", "10", "--max-tokens", "24", "--num-blocks", "12"]


@pytest.fixture(scope="module")
def figures(random_model: Path) -> dict[str, object]:
    """Those of a small run."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        assert main(["demo", "--json", "--model", str(random_model), *SMALL]) == 0
    figures = json.loads(out.getvalue())
    assert isinstance(figures, dict)
    return figures


def test_four_ways_do_the_same_work(figures: dict) -> None:  # type: ignore[type-arg]
    assert figures["answers"] == {"identical": 10, "near_ties": 0, "different": 0}
    ways = figures["ways"]
    assert [way["name"] for way in ways] == ["serial, no cache", "serial, cache", "static batches", "continuous, paged"]
    assert len({way["generated_tokens"] for way in ways}) == 1


def test_the_figures_add_up(figures: dict) -> None:  # type: ignore[type-arg]
    no_cache, cached, static, paged = figures["ways"]
    generated, prompt_tokens = no_cache["generated_tokens"], figures["prompt_tokens"]
    # One step for each token; the last token of each answer is never fed back.
    assert no_cache["steps"] == cached["steps"] == generated
    assert cached["computed_tokens"] == prompt_tokens + generated - figures["requests"]
    assert no_cache["computed_tokens"] > cached["computed_tokens"]
    assert cached["mean_batch"] == 1 < static["mean_batch"] < paged["mean_batch"]
    assert paged["steps"] < static["steps"] < cached["steps"]
    for way in (cached, static, paged):
        assert way["mean_live_slots"] <= way["mean_held_slots"] <= way["peak_held_slots"] <= 12 * 16
        assert way["utilisation"] == pytest.approx(way["mean_live_slots"] / way["mean_held_slots"])
        assert way["tokens_per_second"] == pytest.approx(generated / way["seconds"])
    assert paged["utilisation"] > static["utilisation"]


def test_the_pool_is_too_small_for_all(figures: dict) -> None:  # type: ignore[type-arg]
    assert figures["arriving_over_time"]["peak_waiting"] > 0


def test_in_a_pipe_it_is_plain_text(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--model", str(random_model), *SMALL]) == 0
    output = capsys.readouterr()
    assert "\033" not in output.out and output.err == ""
    for words in ("step    0  blocks", "measuring 4 of 4: continuous, paged", "All four ways gave the same 10 answers"):
        assert words in output.out
    assert DEMO_PROMPTS[0].title in output.out


def test_in_a_pipe_a_line_comes_now_and_then(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--model", str(random_model), *SMALL]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert [int(line.split()[1]) for line in lines] == list(range(0, 25 * len(lines), 25)) and len(lines) > 2
    assert all("/12  running " in line and line.endswith("/10") for line in lines)


def test_the_same_seed_is_the_same_run(random_model: Path, figures: dict, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[type-arg]
    assert main(["demo", "--json", "--model", str(random_model), *SMALL]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["arriving_over_time"] == figures["arriving_over_time"]


def test_prompts_that_can_never_fit_are_left_out_or_refused(
    random_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--model", str(random_model), "--requests", "10", "--max-tokens", "20"]
    assert main([*arguments, "--num-blocks", "2"]) == 0
    assert "Left out: " in capsys.readouterr().out
    assert main([*arguments, "--num-blocks", "1"]) == 2
    assert "even the shortest request needs" in capsys.readouterr().err


# The scoreboard -------------------------------------------------------------------------------------------------------


def scores(paged_seconds: float) -> list[Score]:
    answers = ((1, 2, 3), (4, 5))
    return [
        Score("serial, no cache", 9.0, answers, 5, 900, 5),
        Score("serial, cache", 3.0, answers, 5, 120, 5, 500, 250, 100),
        Score("static batches", 2.0, answers, 3, 150, 5, 600, 250, 200),
        Score("continuous, paged", paged_seconds, answers, 2, 110, 5, 300, 270, 200),
    ]


@pytest.mark.parametrize("width", [60, 100, 200])
@pytest.mark.parametrize("paged_seconds", [1.0, 4.0])
def test_the_scoreboard_fits_and_its_words_follow_its_figures(width: int, paged_seconds: float) -> None:
    console = Console(file=io.StringIO(), width=width)
    agreements = [Agreement(2, 0, 0), Agreement(1, 1, 0)]
    scoreboard.print_scoreboard(console, scores(paged_seconds), agreements, 1024, 16, 1)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(cell_len(line.rstrip()) <= width for line in shown.splitlines())
    rows = [line for line in shown.splitlines() if line.startswith(("serial", "static", "continuous"))]
    assert len(rows) == 4 and "90%" in rows[3]
    words = " ".join(shown.split())
    assert "but for 1 that parted" in words
    assert ("2.0 times as many tokens" in words) == (paged_seconds == 1.0)
    assert ("Here each step takes longer" in words) == (paged_seconds == 4.0)


def test_near_ties_are_tolerated_and_nothing_else() -> None:
    def plain(*margins: float) -> PlainAnswer:
        return PlainAnswer([Draw(i, 0.0) for i in range(len(margins))], list(margins))

    oracle = [plain(1, 1, 1), plain(1, 1e-5, 1), plain(1, 1, 1), plain(1, 1e-5, 1)]
    answers = [[0, 1, 2], [0, 9], [0, 9, 2], [0, 1, 9]]
    assert Agreement.of(oracle, answers) == Agreement(identical=1, near_ties=1, different=2)
    assert Agreement.of([plain(1, 1)], [[0]]).different == 1  # shorter for no reason


def test_what_is_shown_is_asked() -> None:
    assert set(SHOWN_TITLES) <= {prompt.title for prompt in DEMO_PROMPTS}
    assert {"请解释什么是量子纠缠", "请解释什么是黑洞"} <= set(SHOWN_TITLES)
    assert len({prompt.title for prompt in DEMO_PROMPTS}) == len(DEMO_PROMPTS) >= 20


@needs_shipped_model
def test_the_shipped_model_does_the_whole_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json", "--max-tokens", "48"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["requests"] == len(DEMO_PROMPTS)
    assert figures["arriving_over_time"]["peak_waiting"] > 0
    assert figures["answers"]["different"] == 0
