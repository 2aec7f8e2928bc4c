"""Every command that a page shows exists; those of the README and of the how-tos run, as they stand, in page order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lessons.runner import commands as lessons
from minipaged.cli import _parser
from tests.docs.clone import Clone
from tests.docs.pages import (
    DOCS,
    HOWTOS,
    NEEDS,
    README,
    ROOT,
    SHOWN,
    TRANSLATIONS,
    UPDATE,
    WALKED,
    blocks_of,
    commands,
    name_of,
    program,
    prose,
    shell_lines,
    shown_commands,
)
from tests.docs.walk import Walk

DEMO = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/minipaged demo"
TESTS = (
    "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[test]' && "
    ".venv/bin/pytest -n 2 --dist loadfile"
)
CPU_TORCH = (
    "python3 -m venv .venv && .venv/bin/pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
)
#: What cannot be run here, and who runs it instead.
ELSEWHERE = {
    DEMO: "`.ci/run`, first of all, in a fresh clone; `tests/cli/test_demo.py` runs the demo",
    TESTS: "`.ci/run`, last of all: it is this very test run",
    CPU_TORCH: "nobody, for it asks a server; that its version is the pinned one is checked below",
}
#: Commands that rightly do not end with 0.
STATUSES = {  # nothing has been written yet
    name_of(page): {".venv/bin/python -m lessons check 5": 1} for page in (README, *TRANSLATIONS)
}

KINDS = {"sh", "python", "text", "json", "csv", "toml", "diff", "html", "mermaid", "yaml"}
COMMANDS = shown_commands("minipaged")
LESSONS = shown_commands("lessons")
_MENTION = re.compile(r"(?<!`)`(?:\.venv/bin/)?minipaged ([a-z][^`]*)`(?!`)")
#: `minipaged …` within a sentence; not where the sentence leaves something open (`…`, COMMAND).
MENTIONED = [
    (name_of(page), shlex.split(found))
    for page in [*SHOWN, ROOT / "kernels" / "README.md"]
    for found in _MENTION.findall(prose(page.read_text(encoding="utf-8")))
    if not re.search(r"…|\.\.\.|\b[A-Z]{3,}\b", found)
]


def ids(found: list[tuple[str, list[str]]]) -> list[str]:
    return [f"{page}: {shlex.join(arguments)}" for page, arguments in found]


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=ids(COMMANDS))
def test_a_command_that_is_shown_exists(page: str, arguments: list[str]) -> None:
    args = _parser(arguments).parse_args(arguments)
    assert callable(args.run)


@pytest.mark.parametrize(("page", "arguments"), MENTIONED, ids=ids(MENTIONED))
def test_a_command_that_is_mentioned_exists(
    page: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence may leave out what the command requires."""
    try:
        _parser(arguments).parse_args(arguments)
    except SystemExit as exit_:
        said = capsys.readouterr().err
        assert exit_.code == 0 or "arguments are required" in said, said


@pytest.mark.parametrize(("page", "arguments"), LESSONS, ids=ids(LESSONS))
def test_a_lessons_command_that_is_shown_exists(page: str, arguments: list[str]) -> None:
    place = arguments.index("run") + 2 if "run" in arguments else len(arguments)  # what follows is the lesson's own
    args = lessons._parser().parse_args(arguments[:place])
    assert callable(args.command)


def lines_of(page: Path) -> set[str]:
    return {line for block in blocks_of(page, "sh") for line in shell_lines(block.text)}


_PROMPT = re.compile(r'(?<="prompt": ")[^"]*')


@pytest.mark.parametrize("page", TRANSLATIONS, ids=name_of)
def test_a_translation_shows_the_same_commands(page: Path) -> None:
    """Comments are translated, and so is a question that is put to the model; nothing else is."""
    shown, original = (
        [_PROMPT.sub("", line) for block in blocks_of(path, "sh") for line in shell_lines(block.text)]
        for path in (page, README)
    )
    assert shown == original


@pytest.mark.parametrize("page", TRANSLATIONS, ids=name_of)
def test_a_translation_leads_wherever_the_original_leads(page: Path) -> None:
    links, original = (set(re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8"))) for path in (page, README))
    assert original - links <= {page.name}


@pytest.mark.parametrize("page", TRANSLATIONS, ids=name_of)
def test_no_line_ends_within_chinese_text(page: Path) -> None:
    """A line's end is shown as a space, and between two Chinese characters there is none."""
    wide = "[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]"
    broken = re.findall(rf".*{wide}\n{wide}.*", prose(page.read_text(encoding="utf-8")))
    assert not broken


# Running -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", WALKED, ids=name_of)
def test_all_that_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    """As a reader would try it, in a folder that looks like a clone: one block after the other."""
    statuses, strict = STATUSES.get(name_of(page)), page in HOWTOS
    text = Walk(page, Clone(tmp_path / "minipaged"), elsewhere=ELSEWHERE, statuses=statuses, strict=strict).go()
    if UPDATE:
        page.write_text(text, encoding="utf-8")
    else:
        assert text == page.read_text(encoding="utf-8")


def test_what_runs_elsewhere_is_still_shown() -> None:
    shown = {name_of(page): lines_of(page) for page in SHOWN}
    assert set(ELSEWHERE) <= set().union(*shown.values()), "no page shows this any more: take its row out of the table"
    for page, statuses in STATUSES.items():
        assert set(statuses) <= shown[page]


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_no_block_hides_from_these_tests(page: Path) -> None:
    """Not behind another name for a shell, nor in a fence that is not closed, nor behind a mark that is no mark."""
    text = page.read_text(encoding="utf-8")
    for block in blocks_of(page):
        assert block.kind in KINDS, f"{block.kind!r} is none of {', '.join(sorted(KINDS))}"
        needs = block.mark("needs")
        assert needs is None or needs in NEEDS, f"needs: {needs}"
        assert block.mark("file") is None or "/" not in str(block.mark("file"))
    assert len(re.findall(r"^\s*```", text, re.M)) == 2 * len(blocks_of(page)), "a fence stands alone"
    for mark in ("needs: ", "file: ", "printed -->", "command: "):
        marked = sum(any(f"<!-- {found} -->".startswith(f"<!-- {mark}") for found in b.marks) for b in blocks_of(page))
        assert text.count(f"<!-- {mark}") == marked, f"a mark <!-- {mark} … stands before no block"


@pytest.mark.parametrize("page", WALKED, ids=name_of)
def test_programs_are_called_by_the_path_that_a_reader_has(page: Path) -> None:
    """A plain `minipaged` or `python` is another one, or none, unless the reader has activated the environment."""
    for block in blocks_of(page, "sh"):
        for line in shell_lines(block.text):
            for command in commands(line):
                if program(command)[0] in ("minipaged", "lessons", "pytest", "python", "pip", "mkdocs"):
                    assert command[0].startswith(".venv/bin/"), line


# The two commands ----------------------------------------------------------------------------------------------------


def test_the_two_commands_are_marked_and_word_for_word() -> None:
    """`.ci/run` takes them from here by their marks."""
    marked = {block.mark("command"): block.text.strip() for block in blocks_of(README, "sh") if block.mark("command")}
    assert marked == {"demo": DEMO, "tests": TESTS}
    home = (DOCS / "index.md").read_text(encoding="utf-8")
    assert DEMO in home and TESTS in home, "the home page shows the same two"


def test_ci_runs_what_the_readme_says() -> None:
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("there is no .ci/run")
    text = script.read_text(encoding="utf-8")
    for name, command in (("demo", DEMO), ("tests", TESTS)):
        assert command in text or f"readme_command {name}" in text, f".ci/run does not run the README's command: {name}"


def test_the_small_torch_is_the_pinned_one() -> None:
    (version,) = re.findall(r"^torch(==\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    assert f"torch{version} " in CPU_TORCH


# These tests can fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('```sh\n.venv/bin/minipaged generate "tea" --max-tokns 4\n```', r"line 2: exit status 2.*--max-tokns"),
        ("```sh\n.venv/bin/minipaged replay nothing.trace\n```", "cannot be read"),
        (
            "```sh\n# two\n.venv/bin/python -m lessons\n.venv/bin/python -m lessons show 5\n```",
            "invalid choice: 'show'",
        ),
        ("```sh\n.venv/bin/python -m lessons list | grep nothing\n```", "exit status 1"),
        ("```sh\n.venv/bin/pip install minipaged\n```", "exit status 127"),
        ('<!-- file: a.py -->\n\n```python\nraise KeyError("gone")\n```\n\n```sh\n.venv/bin/python a.py\n```', "gone"),
        ("```python\nassert 1 == 2\n```", "page.md, line 2.*AssertionError"),
        ('```python\nprint("a")\n```\n\n```python\nprint("b")\n```', "not shown:\na"),
        ('```python\nprint("a")\n```', "not shown:\na"),
    ],
)
def test_a_page_that_is_wrong_is_found_out(text: str, said: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=f"(?s){said}"):
        Walk(page, Clone(tmp_path / "minipaged"), strict=True).go()


def test_what_is_printed_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    """And a file that is saved can be imported, and what a line writes can be read."""
    page = tmp_path / "page.md"
    text = (
        "<!-- file: answer.py -->\n\n```python\nVALUE = 41\n```\n\n```sh\necho 1 > one.txt\n```\n\n"
        "```python\nfrom pathlib import Path\n\nfrom answer import VALUE\n\n"
        'print(VALUE + int(Path("one.txt").read_text()))\n```\n\n<!-- printed -->\n\n```text\nWRONG\n```\n'
    )
    page.write_text(text, encoding="utf-8")
    assert Walk(page, Clone(tmp_path / "minipaged")).go() == text.replace("WRONG", "42")
