"""What the README and the pages show is true: commands exist, snippets run, printed output is what is printed.

With `MINIPAGED_UPDATE_DOCS=1` the blocks below `<!-- printed -->` are rewritten instead of compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from minipaged.cli import _parser, main
from minipaged.model.loader import ASSETS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
MADE = {"assets/run.html"}  # with the site
MAP = ROOT / "docs" / "architecture.md"
UPDATE = os.environ.get("MINIPAGED_UPDATE_DOCS") == "1"
SHIPPED = (ASSETS / "tiny-gpt" / "model.safetensors").is_file()

DEMO = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/minipaged demo"
TESTS = (
    "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[test]' && "
    ".venv/bin/pytest -n 2 --dist loadfile"
)

_BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n\n?)?^```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(page: Path, kind: str) -> list[str]:
    """The fenced blocks of one kind, in order."""
    return [found["text"] for found in _BLOCK.finditer(page.read_text(encoding="utf-8")) if found["kind"] == kind]


def command_lines() -> list[tuple[str, list[str]]]:
    """Every `minipaged …` of the shell blocks of README and pages: (page, its arguments)."""
    found = []
    for page in (README, *PAGES):
        for text in blocks(page, "sh"):
            for line in text.replace("\\\n", " ").splitlines():
                for words in _commands(shlex.split(line, comments=True)):
                    if Path(words[0]).name == "minipaged":
                        found.append((page.name, words[1:]))
    return found


def _commands(words: list[str]) -> Iterator[list[str]]:
    """Cuts a line at && and |."""
    command: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", "|"):
            if command:
                yield command
            command = []
        else:
            command.append(word)


COMMANDS = command_lines()


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=[shlex.join(a) for _, a in COMMANDS])
def test_a_command_that_is_shown_exists(page: str, arguments: list[str]) -> None:
    args = _parser(arguments).parse_args(arguments)
    assert callable(args.run)


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=[shlex.join(a) for _, a in COMMANDS])
def test_a_command_that_is_shown_runs(
    page: str,
    arguments: list[str],
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a tiny random model; the demo has tests of its own, and takes its time."""
    monkeypatch.chdir(tmp_path)  # what is written (--record) goes there
    if arguments[0] != "generate":
        pytest.skip(f"`minipaged {arguments[0]}` is run by tests/cli")
    if "--model" in arguments:
        place = arguments.index("--model")
        arguments = [*arguments[:place], *arguments[place + 2 :]]
    arguments = [*arguments, "--model", str(tiny_folder)]
    if "--max-tokens" not in arguments:
        arguments = [*arguments, "--max-tokens", "4"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip()


def test_the_two_commands_are_marked_and_word_for_word() -> None:
    """`.ci/run` takes them from here by their marks."""
    marked = {
        found["mark"]: found["text"].strip()
        for found in _BLOCK.finditer(README.read_text(encoding="utf-8"))
        if found["mark"]
    }
    assert marked["command: demo"] == DEMO
    assert marked["command: tests"] == TESTS
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert DEMO in home and TESTS in home, "the home page shows the same two"


def test_ci_runs_what_the_readme_says() -> None:
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("there is no .ci/run")
    text = script.read_text(encoding="utf-8")
    for name, command in (("demo", DEMO), ("tests", TESTS)):
        assert command in text or f"readme_command {name}" in text, f".ci/run does not run the README's command: {name}"


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "index.md"], ids=lambda page: page.name)
def test_snippets_run(page: Path, tiny_folder: Path) -> None:
    """All Python blocks of a page, one after the other, on a tiny random model."""
    namespace: dict[str, object] = {}
    shown = blocks(page, "python")
    assert shown
    for text in shown:
        text = text.replace('"tiny-gpt"', repr(str(tiny_folder)))
        exec(compile(text, page.name, "exec"), namespace)


def printing_pages() -> list[Path]:
    return [page for page in PAGES if "<!-- printed -->" in page.read_text(encoding="utf-8")]


@pytest.mark.skipif(not SHIPPED, reason="the shipped model tiny-gpt is not here")
@pytest.mark.parametrize("page", printing_pages(), ids=lambda page: page.name)
def test_what_a_page_prints_is_what_it_says(page: Path) -> None:
    """Its Python blocks run in their order; what they print is in the `text` block marked `printed` behind them."""
    namespace: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    printed = ""

    def run(found: re.Match[str]) -> str:
        nonlocal printed
        if found["kind"] == "python":
            assert not printed, f"{page.name}: what the block before prints is not shown:\n{printed}"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(found["text"], page.name, "exec"), namespace)
            printed = out.getvalue()
        elif found["mark"] == "printed":
            lines, printed = printed, ""
            if UPDATE:
                return f"<!-- printed -->\n\n```text\n{lines}```"
            assert found["text"] == lines
        return found[0]

    updated = _BLOCK.sub(run, text)
    if UPDATE:
        page.write_text(updated, encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    sorted(
        path.relative_to(ROOT).as_posix()
        for top in ("minipaged", "kernels/minipaged_kernels")
        for path in (ROOT / top).rglob("*.py")
    ),
)
def test_every_file_has_its_sentence_in_the_map(path: str) -> None:
    rows = [
        line for line in MAP.read_text(encoding="utf-8").splitlines() if line.startswith(f"| [`{path}`](../{path})")
    ]
    assert len(rows) == 1, f"docs/architecture.md, 'Every file in a sentence': one row for {path}"
    assert rows[0].split("|")[2].strip().endswith((".", ".)")), "a sentence"


def test_the_map_names_no_file_that_is_gone() -> None:
    for name in re.findall(r"^\| \[`([^`]+)`\]", MAP.read_text(encoding="utf-8"), re.M):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """`mkdocs build --strict` checks the pages' anchors; this holds for the README, too, and without mkdocs."""
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target in MADE or (page.parent / target).exists(), f"{page.name}: {target}"
