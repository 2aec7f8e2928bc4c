"""Stage: real programs in real pseudo-terminals. Keys do what they should; the terminal is always given back."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from minipaged.trace_file import TraceReader
from minipaged.viz import stage
from minipaged.viz.example import example_trace
from minipaged.viz.player import Player, is_telling
from tests.viz.terminal import Terminal

ONE_LINE = '{"prompt": [1, 2, 3, 4, 5, 6], "max_tokens": 240, "ignore_eos": true, "title": "counting"}'


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workloads") / "long.jsonl"
    path.write_text(ONE_LINE)
    return path


def replay(trace_path: Path, *arguments: str, **options: object) -> Terminal:
    return Terminal("-m", "minipaged", "replay", str(trace_path), *arguments, **options)  # type: ignore[arg-type]


def watch(model: Path, workload: Path, *arguments: str, **options: object) -> Terminal:
    options_ = ("--model", str(model), "--workload", str(workload), "--blocks", "120", *arguments)
    return Terminal("-m", "minipaged", "watch", *options_, **options)  # type: ignore[arg-type]


def step_shown(screen: list[str]) -> int:
    assert screen[0].startswith("step ")
    return int(screen[0].split()[1])


# Keys -----------------------------------------------------------------------------------------------------------------


def test_keys_move_through_a_recorded_run(trace_path: Path) -> None:
    with TraceReader(trace_path) as reader:
        last = len(reader) - 1
        telling = [index for index in range(10, last) if is_telling(reader, index)]
    with replay(trace_path, "--step", "10") as terminal:
        terminal.wait_for("step 10 ", "paused")
        terminal.press("n")
        terminal.wait_for("step 11 ")
        terminal.press("\x1b[C", "\x1b[C", "\x1b[D")
        terminal.wait_for("step 12 ")
        terminal.press("g", "p")
        terminal.wait_for("step 0 ", "first step")
        terminal.press("G")
        terminal.wait_for(f"step {last} ", "over")
        terminal.press("g", *"n" * 10, "]")
        terminal.wait_for(f"step {next(index for index in telling if index > 10)} ")
        terminal.press("\t")
        terminal.wait_for("[blocks]")
        terminal.press("/", "7")
        terminal.wait_for("/7_")
        terminal.press("\r", "\r")
        terminal.wait_for("life of block 7", "follows block 7")
        terminal.press("?")
        terminal.wait_for("any key goes back", "the first step")
        terminal.press("x", "\x1b")
        terminal.wait_for("nothing is selected: press a sequence's letter, or / and a block's number")
        terminal.press("g", " ", "+")
        terminal.wait_for("playing", "16/s")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()


def test_a_live_run_goes_on_while_its_past_is_looked_at(tiny_folder: Path, workload: Path) -> None:
    with watch(tiny_folder, workload, "--speed", "16") as terminal:
        terminal.wait_for("live", "counting")
        while step_shown(terminal.screen) < 8:  # on a busy machine not every step is drawn
            terminal.read(0.1)
        terminal.press("p", "p")
        past = step_shown(terminal.wait_for("the past, engine runs on"))
        terminal.read(1.0)
        assert step_shown(terminal.screen) == past
        assert int(terminal.screen[0].split()[5]) > past + 3, "of so many steps"
        terminal.press("G")
        now = step_shown(terminal.wait_for("live"))
        assert now > past + 3
        terminal.press(" ")
        paused = step_shown(terminal.wait_for("paused"))
        terminal.press("n")
        terminal.wait_for(f"step {paused + 1} ", "paused")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()
        assert "1 request" in terminal.after_the_show


def test_a_demo_that_is_quit_goes_on_without_its_picture(tiny_folder: Path) -> None:
    arguments = ("--model", str(tiny_folder), "--requests", "4", "--max-tokens", "40", "--num-blocks", "200")
    with Terminal("-m", "minipaged", "demo", *arguments) as terminal:
        terminal.wait_for("live", "answers")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()
        assert "were answered in" in terminal.after_the_show and "four ways" in terminal.after_the_show


# The terminal is given back -------------------------------------------------------------------------------------------


def test_after_q(trace_path: Path) -> None:
    with replay(trace_path) as terminal:
        terminal.wait_for("playing")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()


def test_after_control_c(tiny_folder: Path, workload: Path, tmp_path: Path) -> None:
    with watch(tiny_folder, workload, "--record", str(tmp_path / "run.trace")) as terminal:
        terminal.wait_for("live")
        terminal.press("\x03")
        assert terminal.wait() == 130
        terminal.assert_restored()
        assert "Traceback" not in terminal.output
        assert "Interrupted. Until then:" in terminal.after_the_show and "1 request" in terminal.after_the_show
        assert f"minipaged replay {tmp_path / 'run.trace'}" in terminal.after_the_show


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal(trace_path: Path, number: signal.Signals) -> None:
    with replay(trace_path) as terminal:
        terminal.wait_for("playing")
        terminal.process.send_signal(number)
        assert terminal.wait() == 128 + number
        terminal.assert_restored()
        assert "Traceback" not in terminal.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_in_the_middle_of_an_entry(tiny_folder: Path, workload: Path, number: signal.Signals) -> None:
    """It waits until the books are written: every call of `commit` comes back."""
    program = f"""
import os, sys
from minipaged import cli, scheduler
commit = scheduler.Scheduler.commit
def struck(self, *arguments):
    if self.num_steps == 5:
        os.kill(os.getpid(), {int(number)})
    changed = commit(self, *arguments)
    if self.num_steps == 5:
        sys.stderr.write("the entry is whole")
    return changed
scheduler.Scheduler.commit = struck
arguments = ["--model", {str(tiny_folder)!r}, "--workload", {str(workload)!r}, "--blocks", "120"]
sys.exit(cli.main(["watch", *arguments]))
"""
    with Terminal("-c", program) as terminal:
        assert terminal.wait() == 128 + number
        terminal.assert_restored()
        assert "the entry is whole" in terminal.output and "Traceback" not in terminal.output


def test_after_an_exception_in_the_engine(tiny_folder: Path, workload: Path) -> None:
    program = f"""
import sys
from minipaged import cli, engine
step = engine.Engine.step
def fails(self):
    if self.scheduler.num_steps == 5:
        raise RuntimeError("the engine is broken")
    return step(self)
engine.Engine.step = fails
arguments = ["--model", {str(tiny_folder)!r}, "--workload", {str(workload)!r}, "--blocks", "120"]
sys.exit(cli.main(["watch", *arguments]))
"""
    with Terminal("-c", program) as terminal:
        assert terminal.wait() == 1
        terminal.assert_restored()
        assert "RuntimeError: the engine is broken" in terminal.after_the_show, "where it can be read"


def test_after_a_resize_in_between(trace_path: Path) -> None:
    with replay(trace_path, "--step", "20") as terminal:
        for width, height in ((100, 30), (60, 20), (150, 45)):
            terminal.resize(width, height)
            terminal.wait_until(
                lambda: [cell_len(line) for line in terminal.screen] == [width] * height,  # noqa: B023
                f"drawn for {width} x {height}",
            )
        terminal.resize(50, 10)
        terminal.wait_for("This terminal is 50 x 10.")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()


@pytest.mark.parametrize("typed", ["", "/", "?"])
def test_a_terminal_that_is_gone_ends_the_show_whatever_was_typed(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        """Keys, and then nobody."""

        def __init__(self) -> None:
            self.reads = 0

        def __enter__(self) -> Gone:
            return self

        def __exit__(self, *exc_info: object) -> None:
            pass

        def read(self, timeout_seconds: float) -> str | None:
            self.reads += 1
            assert self.reads < 10, "it asks again and again"
            if self.reads > len(typed):
                raise EOFError
            return typed[self.reads - 1]

    monkeypatch.setattr(stage, "Keys", Gone)
    found = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)]
    stage.perform(Player(example_trace()), Console(file=io.StringIO(), force_terminal=True, width=80, height=24))
    assert found == [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
    ]


LITTLE_SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen([sys.executable, "-m", "minipaged", *sys.argv[1:]], preexec_fn=os.setpgrp)
os.tcsetpgrp(0, job.pid)
_, status = os.waitpid(job.pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("it rests" if os.WIFSTOPPED(status) else "it ended", flush=True)
sys.stdin.readline()
os.tcsetpgrp(0, job.pid)
job.send_signal(signal.SIGCONT)
sys.exit(job.wait())
"""


def test_control_z_gives_it_back_for_as_long_as_the_program_rests(trace_path: Path) -> None:
    with Terminal("-c", LITTLE_SHELL, "replay", str(trace_path), "--step", "5") as terminal:
        terminal.wait_for("step 5 ")
        terminal.press("\x1a")
        terminal.wait_until(lambda: "it rests" in terminal.after_the_show, "at rest")
        terminal.assert_restored()
        terminal.output = ""
        terminal.press("\n")
        terminal.wait_for("step 5 ")
        terminal.press("q")
        assert terminal.wait() == 0
        terminal.assert_restored()


# What a terminal can show ---------------------------------------------------------------------------------------------


def test_without_colour_none_is_sent(trace_path: Path) -> None:
    with replay(trace_path, "--step", "20", NO_COLOR="1") as terminal:
        terminal.wait_for("step 20 ")
        terminal.press("q")
        assert terminal.wait() == 0
        assert "\x1b[38;" not in terminal.output and "\x1b[3" not in terminal.output.replace("\x1b[3m", "")


def test_an_ascii_terminal_gets_ascii(trace_path: Path) -> None:
    with replay(trace_path, "--step", "20", PYTHONIOENCODING="ascii", PYTHONUTF8="0") as terminal:
        terminal.wait_for("step 20 ", "n p step")
        terminal.press("?")
        terminal.wait_for("any key goes back")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.output.isascii() and "\\u" not in terminal.output


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LANG": "POSIX"}])
def test_where_the_locale_is_c_ascii_is_sent(trace_path: Path, locale: dict[str, str]) -> None:
    with replay(trace_path, "--step", "20", **locale) as terminal:
        terminal.wait_for("step 20 ", "n p step")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.output.isascii()


@pytest.mark.parametrize("how", ["dumb", "no keys"])
def test_where_nothing_can_be_drawn_the_run_is_summed_up(trace_path: Path, how: str) -> None:
    if how == "dumb":
        terminal = replay(trace_path, TERM="dumb")
    else:
        program = "import os, sys; sys.stdin = open(os.devnull); from minipaged.cli import main; main(sys.argv[1:])"
        terminal = Terminal("-c", program, "replay", str(trace_path))
    with terminal:
        assert terminal.wait() == 0
        assert "\x1b" not in terminal.output
        assert terminal.output.startswith("minipaged: no picture, since ")
        assert ("TERM is 'dumb'" if how == "dumb" else "there are no keys") in terminal.output.splitlines()[0]
        assert "6 requests" in terminal.output and "preemption" in terminal.output
