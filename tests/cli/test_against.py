"""`minipaged watch --against`: two engines on one clock, which stop where they part and say why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minipaged.cli import main
from minipaged.cli.against import OTHERS, OURS, Duel, Side, duel
from minipaged.cli.watch import AGAINST
from minipaged.cli.workload import parse_workload
from minipaged.trace_file import TraceReader
from minipaged.viz.side_by_side import side_by_side
from minipaged.viz.theme import Theme

OPTIONS = {"num_blocks": 16, "block_size": 4, "max_batch_tokens": 32, "max_sequences": 6}  # 64 slots
WORK = [
    {"prompt": [1, 2, 3, 4, 5, 6, 7, 8, 9], "max_tokens": 20, "ignore_eos": True},  # 28 slots, reserved
    {"prompt": [11, 12, 13], "max_tokens": 20, "ignore_eos": True, "arrive_step": 2},  # 22
    {"prompt": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "max_tokens": 8, "ignore_eos": True, "arrive_step": 4},  # 17
]


def fight(tiny_folder: Path, other: str, work: list[dict[str, object]] = WORK) -> Duel:
    found = duel(other, str(tiny_folder), dict(OPTIONS), parse_workload(json.dumps(line) for line in work))
    while found.step():
        pass
    return found


def test_the_command_line_offers_what_there_is() -> None:
    assert list(AGAINST) == list(OTHERS)


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        (
            "reserve-max",  # 64 - 28 - 22
            "Step 4: paged admits C; reserve-max refuses it with 14 slots free: it needs 17 in a row, the largest hole "
            "has 14.",
        ),
        (
            "buddy",  # 32 and 32 are taken
            "Step 4: paged admits C; buddy refuses it with 0 slots free: it needs 32 in a row, the largest hole has 0.",
        ),
        ("static", "Step 2: paged admits B; static lets it wait: the batch is not over."),
        ("no-sharing", "Step 4: paged finds the first 9 tokens of C in its cache; no-sharing begins at 0."),
    ],
)
def test_it_stops_where_they_part_and_says_why(tiny_folder: Path, other: str, verdict: str) -> None:
    found = fight(tiny_folder, other)
    assert found.verdict == verdict
    step = int(verdict.split(":")[0].split()[1])
    assert len(found.left.looks) == len(found.right.looks) == step + 1
    assert not found.step(), "it is over"


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_shown_is_what_the_books_say(tiny_folder: Path, other: str) -> None:
    found = fight(tiny_folder, other)
    for side in (found.left, found.right):
        look = side.looks[-1]
        held = {slot for r in look.regions for b in r.table for slot in range(b * r.block_size, (b + 1) * r.block_size)}
        assert len(held) == look.held_slots == side.memory.held_slots
        assert look.num_slots == 64
        assert [region.sequence for region in look.regions] == [s.id for s in side.scheduler.running]


def test_they_may_never_part(tiny_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = fight(tiny_folder, "reserve-max", WORK[:2])
    assert found.verdict == "" and found.left.memory.held_slots == found.right.memory.held_slots == 0
    work = tmp_path / "work.jsonl"
    work.write_text(json.dumps(WORK[1]))
    assert main(["watch", "--against", "buddy", "--workload", str(work), "--model", str(tiny_folder)]) == 0
    assert "did the same" in capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("height", [20, 40])
@pytest.mark.parametrize("theme", [Theme(), Theme(False, "none")])
def test_the_picture_fits(tiny_folder: Path, width: int, height: int, theme: Theme) -> None:
    found = fight(tiny_folder, "reserve-max")
    picture = side_by_side(found.left.looks[-1], found.right.looks[-1], found.verdict, theme, width, height)
    lines = picture.plain.splitlines()
    assert len(lines) <= height and max(map(len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    assert "reserve-max refuses it with 14 slots free" in said
    assert theme.unicode or said.isascii()


def test_the_command_without_a_terminal(tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work.jsonl"
    work.write_text("\n".join(map(json.dumps, WORK)))
    options = ["--blocks", "16", "--block-size", "4", "--max-batch-tokens", "32", "--max-sequences", "6"]
    record = tmp_path / "run.trace"
    arguments = ["watch", "--against", "static", "--workload", str(work), "--model", str(tiny_folder), *options]
    assert main([*arguments, "--record", str(record)]) == 0
    out = capsys.readouterr().out
    assert "static lets it wait: the batch is not over" in out and "replay" in out
    with TraceReader(record) as trace:
        assert len(trace) == 3


def test_who_is_not_forked_yet_is_not_said_to_wait(tiny_folder: Path) -> None:
    """Ours finds the second prompt in its cache; its second answer is in while the other computes the prompt."""
    prompt = list(range(1, 41))
    work: list[dict[str, object]] = [
        {"prompt": prompt, "max_tokens": 1, "ignore_eos": True},
        {"prompt": prompt, "max_tokens": 2, "n": 2, "ignore_eos": True, "arrive_step": 6},
    ]
    lines = parse_workload(json.dumps(line) for line in work)
    options = {**OPTIONS, "max_batch_tokens": 8, "max_sequences": 1}
    found = duel("reserve-max", str(tiny_folder), options, lines)
    while found.step():
        pass
    assert found.verdict == "Step 7: paged admits C; reserve-max has not come to it yet."


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("step", [0, 3])
def test_ctrl_c_between_the_two_sides_leaves_a_picture_of_both(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    side: str, step: int,
) -> None:  # fmt: skip
    """On the left after its engine has made the step, on the right before."""
    work = tmp_path / "work.jsonl"
    work.write_text("\n".join(map(json.dumps, WORK)))
    options = ["--blocks", "16", "--block-size", "4", "--max-batch-tokens", "32", "--max-sequences", "6"]
    whole = Side.step

    def interrupted(self: Side) -> None:
        if len(self.looks) == step and (self.name == OURS) == (side == "left"):
            if side == "left":
                self.llm.step()
            raise KeyboardInterrupt
        whole(self)

    monkeypatch.setattr(Side, "step", interrupted)
    arguments = ["watch", "--against", "no-sharing", "--workload", str(work), "--model", str(tiny_folder), *options]
    assert main([*arguments, "--record", str(tmp_path / "run.trace")]) == 130
    out = capsys.readouterr().out
    assert f"In {step} steps paged and no-sharing did the same." in out
    assert ("paged, step 2" in out and "no-sharing, step 2" in out) is (step == 3)
    with TraceReader(tmp_path / "run.trace") as trace:
        assert len(trace) == step + 1
