"""The dashboard fits: every size, panel, character set and colour mode; and it looks as its snapshots do."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from minipaged.viz.dashboard import PANELS, TWO_COLUMNS, View, dashboard
from minipaged.viz.example import example_trace
from minipaged.viz.history import History
from minipaged.viz.show import eventful_step
from minipaged.viz.theme import Theme, letter, name, sequence_named, with_names
from tests.house import House
from tests.viz.witnessed import Witnessed, random_run

ROOT = Path(__file__).parent.parent.parent
SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("MINIPAGED_UPDATE_DOCS") == "1"
EXAMPLE = History(example_trace())
SIZES = [(60, 20), (60, 60), (79, 24), (80, 25), (109, 30), (110, 30), (120, 40), (161, 47), (200, 20), (200, 60)]
FILES = sorted(  # the others here want a terminal, or are nothing to look at
    path.stem for path in (ROOT / "minipaged" / "viz").glob("*.py") if "viz.show import show" in path.read_text("utf-8")
)


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_wraps_or_overflows(width: int, height: int, panel: str, unicode: bool) -> None:
    for index in range(0, len(EXAMPLE), 5):
        for view in (View(panel), View(panel, sequence=5, block=7), View(panel, sequence=999, block=999)):
            picture = dashboard(EXAMPLE, index, view, width, height, Theme(unicode))
            assert 3 <= len(picture) <= height
            for line in picture:
                assert cell_len(line.plain) <= width, line.plain
                assert "\n" not in line.plain
                assert unicode or line.plain.isascii(), line.plain
            out = io.StringIO()
            Console(file=out, width=width).print(picture)
            printed = [line.rstrip() for line in out.getvalue().splitlines()]
            assert printed == [line.plain.rstrip() for line in picture], "a line was wrapped or cut"


@pytest.mark.parametrize(("width", "height"), [(1, 1), (10, 3), (30, 8), (59, 19), (300, 100)])
def test_sizes_that_it_is_not_made_for_do_no_harm(width: int, height: int) -> None:
    for panel in PANELS:
        picture = dashboard(EXAMPLE, 20, View(panel, 5, 7), width, height, Theme())
        assert len(picture) <= height
        assert all(cell_len(line.plain) <= width for line in picture)


@pytest.mark.parametrize("num_blocks", [24, 3000])
def test_many_sequences_and_wide_titles_fit(num_blocks: int) -> None:
    history = History(random_run(3, num_requests=70, num_blocks=num_blocks))
    for index in range(0, len(history), 9):
        for panel in PANELS:
            picture = dashboard(history, index, View(panel), 60, 20, Theme())
            assert len(picture) <= 20
            assert all(cell_len(line.plain) <= 60 for line in picture)


def test_a_trace_that_begins_late_counts_all_steps() -> None:
    house = House(8, 4)
    house.add(5, max_tokens=8)
    for _ in range(3):
        house.step()
    run = Witnessed(house)
    house.run()
    assert len(run) == 5 and dashboard(run, 0, View(), 80, 24, Theme()).lines[0].plain.startswith("step 3 of 3 to 7 ")


@pytest.mark.parametrize("panel", PANELS)
def test_the_panel_that_is_shown_is_always_named(panel: str) -> None:
    for width in range(60, 121, 4):
        for index in (0, len(EXAMPLE) - 1):
            head = dashboard(EXAMPLE, index, View(panel), width, 20, Theme()).lines[0].plain.rstrip()
            assert head.startswith(f"step {index} of 0 to {len(EXAMPLE) - 1}  ") and f"[{panel}]" in head
            assert all(word.strip("[]") in PANELS for word in head.split("  ", 1)[1].split()), "none is cut"


@pytest.mark.parametrize(("width", "height"), [(60, 20), (80, 24), (110, 30), (120, 30), (120, 40), (200, 60)])
def test_the_legend_stays_however_much_happens(width: int, height: int) -> None:
    for index in range(len(EXAMPLE)):
        text = dashboard(EXAMPLE, index, View(), width, height, Theme()).plain
        lines = [line.partition(" │ ")[0] for line in text.splitlines()]
        rows = [line for line in lines if re.match(r" *\d+ \S[█▁▂▃▄▅▆▇ ]", line)]
        legend = lines[lines.index(rows[-1]) + 1]
        assert re.match(r"(A owner|[-+&»x↑↓] (released|new|one more|copied|evicted|swapped))", legend), text
        if width >= TWO_COLUMNS:
            assert "A owner" in legend, "all of it"


# Colours -----------------------------------------------------------------------------------------------------------


def codes(theme: Theme, system: Any, no_color: bool = False) -> tuple[set[str], str]:
    """(the colour and style codes that a terminal gets, its text)."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=120,
        force_terminal=True,
        color_system=system,
        no_color=no_color,
    )
    for index in range(0, len(EXAMPLE), 3):
        console.print(dashboard(EXAMPLE, index, View(sequence=5), 120, 40, theme))
    sequences = re.findall(r"\x1b\[([\d;]*)m", out.getvalue())
    return {code for sequence in sequences for code in sequence.split(";")}, re.sub(
        r"\x1b\[[\d;]*m", "", out.getvalue()
    )


ATTRIBUTES = {"0", "1", "2", "4", "7"}  # reset, bold, dim, underline, reverse
SIXTEEN = {str(base + color) for base in (30, 90) for color in range(8)}


def test_no_color_sends_no_color() -> None:
    found, _ = codes(Theme(colors="none"), "standard")
    assert found <= ATTRIBUTES and {"1", "2"} <= found


def test_sixteen_colors_are_sixteen() -> None:
    found, _ = codes(Theme(colors="16"), "standard")
    assert found <= ATTRIBUTES | SIXTEEN
    assert len(found & SIXTEEN) >= 6


def test_full_color_has_more() -> None:
    found, _ = codes(Theme(colors="full"), "truecolor")
    assert "38" in found


def test_what_is_read_does_not_depend_on_color() -> None:
    """Owner and state are told by letter and glyph: without any colour the same characters stand there."""
    assert len({codes(Theme(colors=colors), "truecolor")[1] for colors in ("none", "16", "full")}) == 1


@pytest.mark.parametrize(
    ("system", "no_color", "encoding", "expected"),
    [
        ("truecolor", False, "utf-8", Theme(True, "full")),
        ("256", False, "utf-8", Theme(True, "full")),
        ("standard", False, "utf-8", Theme(True, "16")),
        ("truecolor", True, "utf-8", Theme(True, "none")),
        (None, False, "ascii", Theme(False, "none")),
        ("standard", False, "latin-1", Theme(False, "16")),
    ],
)
def test_the_theme_is_what_the_console_can_show(
    system: Any, no_color: bool, encoding: str, expected: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(
        file=file,
        force_terminal=True,
        color_system=system,
        no_color=no_color,
        legacy_windows=False,
    )
    assert Theme.of(console) == expected


def test_glyphs_are_one_cell_wide_and_states_differ() -> None:
    for theme in (Theme(True), Theme(False)):
        glyphs = theme.glyphs
        single = [*glyphs.fill, *glyphs.marks.values(), glyphs.prefill, glyphs.recompute, glyphs.decode, glyphs.waits]
        single += [glyphs.waits_again, glyphs.preempted, glyphs.bar, glyphs.bar_half, glyphs.bar_rest, glyphs.arrow]
        states = [glyphs.free, glyphs.evictable, glyphs.sole, glyphs.clean, glyphs.mixed]
        assert all(cell_len(glyph) == len(glyph) == 1 for glyph in single + states)
        assert len(set(states)) == len(states)
        assert not any(state.isalnum() for state in states), "letters are owners, digits are counts"
        phases = [glyphs.prefill, glyphs.recompute, glyphs.decode, glyphs.waits, glyphs.waits_again, glyphs.preempted]
        assert len(set(phases)) == len(phases)


def test_names() -> None:
    assert [name(i) for i in (0, 25, 26, 51, 52, 103, 104)] == ["A", "Z", "a", "z", "A2", "z2", "A3"]
    assert [letter(i) for i in (0, 51, 52, 104)] == ["A", "z", "A", "A"]
    assert all(sequence_named(name(i)) == i for i in range(1000))
    assert [sequence_named(text) for text in ("", "A1", "A0", "AB", "7", "A 2")] == [None] * 6
    assert with_names("sequence 53 needs room; 6 sequences run") == "B2 needs room; 6 sequences run"


def test_a_view_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="panel is 'map'; it must be one of overview, blocks"):
        View("map")
    with pytest.raises(IndexError):
        dashboard(EXAMPLE, len(EXAMPLE), View(), 80, 24, Theme())


def test_titles_cannot_drive_the_terminal() -> None:
    assert Theme().text("a\x1b[2Jb\nc\td") == "a [2Jb c d"
    assert Theme(unicode=False).text("茶 é") == "? ?"
    assert Theme().cut("茶茶茶", 4) == "茶…" and Theme().cut("茶茶茶", 6) == "茶茶茶"


# Snapshots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "view", "width", "height", "unicode"),
    [
        ("overview", View(), 120, 40, True),
        ("overview_narrow", View(), 80, 30, True),
        ("overview_least_ascii", View(), 60, 20, False),
        *((panel, View(panel, sequence=4, block=12), 100, 30, True) for panel in PANELS[1:]),
    ],
)
def test_it_looks_as_it_did(picture: str, view: View, width: int, height: int, unicode: bool) -> None:
    """`MINIPAGED_UPDATE_DOCS=1` writes them anew; look at what changed."""
    text = dashboard(EXAMPLE, eventful_step(EXAMPLE), view, width, height, Theme(unicode)).plain
    path = SNAPSHOTS / f"{picture}.txt"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_drawing_twice_is_the_same_and_leaves_the_trace_alone() -> None:
    trace = example_trace()
    first = [dashboard(trace, i, View(), 120, 40, Theme()).plain for i in range(len(trace))]
    history = History(trace)
    back = [dashboard(history, i, View(), 120, 40, Theme()).plain for i in reversed(range(len(trace)))]
    assert first == back[::-1]


@pytest.mark.parametrize("module", ["show", *FILES])
def test_each_file_shows_itself(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"minipaged.viz.{module}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "90", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernels'}", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines and all(cell_len(line) <= 90 for line in lines)
