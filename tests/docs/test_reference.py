"""The reference says what is there: the API pages, the command line's, the table of options, the trace format.

With `MINIPAGED_UPDATE_DOCS=1` what the pages show is rewritten instead of compared.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import inspect
import io
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import minipaged
from minipaged.cli import main
from minipaged.config import EngineConfig
from minipaged.sampling_params import SamplingParams
from minipaged.trace import TraceHeader
from minipaged.trace_file import LiveTrace, TraceReader
from minipaged.trace_state import KEYS, TraceState
from minipaged.viz.example import example_trace
from minipaged.viz.player import HELP
from tests.docs.clone import Clone
from tests.docs.hooks import load
from tests.docs.pages import ROOT, UPDATE
from tests.docs.test_snippets import SHIPPED
from tests.docs.walk import Walk
from tests.house import House
from tests.test_recorder import recorded

REFERENCE = ROOT / "docs" / "reference"
hook = load(ROOT / "docs" / "hooks" / "command_line.py")
API = (REFERENCE / "api.md").read_text(encoding="utf-8")
COMMANDS = REFERENCE / "command_line.md"
NAMES = re.findall(r"^::: (\S+)$", API, re.M)
MADE_ELSEWHERE = ("minipaged.llm.Stream",)  # nobody calls the constructor but the one that the docstring names


# The Python interface ------------------------------------------------------------------------------------------------


def found(name: str) -> Any:
    """What a dotted name of the page stands for."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def public_members(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods and properties that a class has of its own."""
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if isinstance(member, property):
            member = member.fget
        if hasattr(member, "func"):  # a cached property
            member = member.func
        if inspect.isfunction(member):
            yield name, member


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method of the page."""
    for name in NAMES:
        thing = found(name)
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", function) for member, function in public_members(thing))
        else:
            yield name, thing


FUNCTIONS = list(functions())
CLASSES = [name for name in NAMES if inspect.isclass(found(name))]


def test_the_page_has_every_public_name_once() -> None:
    assert len(NAMES) == len(set(NAMES))
    listed = {id(found(name)) for name in NAMES}
    for name in minipaged.__all__:
        assert id(getattr(minipaged, name)) in listed, f"minipaged.{name} is not in docs/reference/api.md"
    assert set(minipaged.__all__) == set(minipaged._HOME)


@pytest.mark.parametrize("name", [*NAMES, *(name for name, _ in FUNCTIONS)])
def test_every_public_name_has_a_docstring(name: str) -> None:
    thing = dict(FUNCTIONS).get(name) or found(name)
    doc = inspect.getdoc(thing) if not inspect.isclass(thing) else thing.__doc__
    assert doc and len(doc.split()) > 1, name
    assert not doc.startswith(f"{name.rpartition('.')[2]}("), "that is what dataclasses write when nobody else does"
    assert re.search(r"[.:!?)]$", doc.split("\n\n")[0].strip()), "sentences"


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_what_a_function_says_of_its_arguments_is_its_signature(name: str, function: Callable[..., Any]) -> None:
    said = list(hook.arguments(inspect.getdoc(function) or ""))
    taken = parameters(function)
    if said:
        assert said == taken, "all of them, in their order"
    else:
        assert len(taken) <= 2, f"{name} takes {taken} and says nothing of them"


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_class_says_of_its_arguments_is_its_constructor(name: str) -> None:
    kind = found(name)
    if getattr(kind, "_is_protocol", False) or name in MADE_ELSEWHERE or issubclass(kind, (BaseException,)):
        return
    if kind.__init__ is object.__init__ or name == "minipaged.request.Status":
        return
    said, taken = list(hook.arguments(inspect.getdoc(kind) or "")), parameters(kind)
    if "__init__" not in vars(kind) and not hasattr(kind, "__dataclass_fields__") and not said:
        return  # as its parent
    assert said == taken


def raised(function: Callable[..., Any]) -> set[str]:
    """The exceptions that a function's own lines raise by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }


def said_to_raise(doc: str) -> list[str]:
    section = re.search(r"^Raises:\n((?:    .*\n?|\n(?=    ))+)", doc, re.M)
    return re.findall(r"^    (\w+): \S", section[1], re.M) if section else []


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_what_a_function_raises_is_said(name: str, function: Callable[..., Any]) -> None:
    said = said_to_raise(inspect.getdoc(function) or "")
    assert raised(function) <= set(said), name
    for exception in said:
        known = getattr(builtins, exception, None) or getattr(sys.modules[function.__module__], exception)
        assert issubclass(known, BaseException)


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_constructor_raises_is_said(name: str) -> None:
    kind = found(name)
    said = said_to_raise(inspect.getdoc(kind) or "")
    for maker in (vars(kind).get("__init__"), vars(kind).get("__post_init__")):
        if inspect.isfunction(maker) and maker.__code__.co_filename == inspect.getsourcefile(kind):  # not dataclass's
            assert raised(maker) <= set(said), name


# The command line ----------------------------------------------------------------------------------------------------


def test_every_command_has_its_place_on_the_page() -> None:
    text = COMMANDS.read_text(encoding="utf-8")
    headings = set(re.findall(r"^##+ (.+)$", text, re.M))
    for command in hook.parsers():
        assert text.count(f"<!-- options: {command} -->\n") == 1, command
        assert re.sub(r" run \d+$", " run", command) in headings
    assert set(re.findall(r"<!-- options: (.*?) -->", text)) == set(hook.parsers())


def test_every_option_is_said_and_its_default_too() -> None:
    for command, parser in hook.parsers().items():
        html = hook.options_of(command)
        for action in hook.actions(parser):
            assert hook.spelling(action).replace("&", "&amp;") in html
            assert action.help, f"{command} {action.option_strings} has no help"
            has_default = action.nargs != 0 and action.default not in (None, False, [], argparse.SUPPRESS)
            if has_default:
                assert "default" in action.help, f"{command} {action.option_strings}: {action.default!r} is not said"
                stated = re.search(r"\(default:? ([^();,]+)", action.help)
                values = action.default if isinstance(action.default, (list, tuple)) else [action.default]
                if stated and stated[1][0].isdigit():
                    assert stated[1].split() == [f"{v:g}" if isinstance(v, float) else str(v) for v in values]


def test_an_unknown_command_on_a_page_stops_the_build() -> None:
    with pytest.raises(KeyError):
        hook.on_page_markdown("<!-- options: minipaged fly -->")


def test_the_keys_are_those_of_the_program() -> None:
    rows = "".join(f"| {_keys(keys)} | {what} |\n" for keys, what in HELP)
    table = "| key | what it does |\n|---|---|\n"
    text = COMMANDS.read_text(encoding="utf-8")
    if UPDATE:
        text = re.sub(re.escape(table) + r"(?:\|.*\n)*", lambda _: table + rows, text)
        COMMANDS.write_text(text, encoding="utf-8")
    assert table + rows + "\n" in text


def _keys(keys: str) -> str:
    return "  ".join(f"`{key}`" for key in keys.split("  "))


# Times and rates, and whose they are; the same line with other ones is the same.
_TIMING = re.compile(r"\d[\d,.]*(?= (?:s|ms|seconds|tokens/s)\b)|\d[\d,.]*(?=/s)")
_PRINTS = re.compile(
    r"^```sh\n(?P<lines>(?:[^`].*\n)+)```\n\n<!-- prints -->\n\n```text\n(?P<text>(?:.*\n)*?)```$", re.M
)


def _untimed(text: str) -> str:
    """A longer time leaves less room on its line for a rule, or for what comes behind it."""
    text = re.sub(r"(tokens/s of engine time).*", r"\1", _TIMING.sub("0", text))
    return re.sub(r"─+", "─", text)


@pytest.mark.skipif(not SHIPPED, reason="the shipped model tiny-gpt is not here")
def test_what_the_examples_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("MINIPAGED_DEBUG", "NO_COLOR", "LC_ALL", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)

    def run(example: re.Match[str]) -> str:
        for line in example["lines"].splitlines():
            program, *arguments = shlex.split(line)
            assert program == ".venv/bin/minipaged"
            capsys.readouterr()
            assert main(arguments) == 0, line
        printed = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
        if UPDATE:
            return example[0][: example.start("text") - example.start()] + printed + "```"
        assert _untimed(example["text"]) == _untimed(printed)
        return example[0]

    text = COMMANDS.read_text(encoding="utf-8")
    assert text.count("<!-- prints -->") == len(_PRINTS.findall(text)) > 3
    updated = _PRINTS.sub(run, text)
    if UPDATE:
        COMMANDS.write_text(updated, encoding="utf-8")


@pytest.mark.skipif(not SHIPPED, reason="the shipped model tiny-gpt is not here")
def test_all_lines_of_the_page_run(tmp_path: Path) -> None:
    """As a reader would type them, one after the other."""
    Walk(COMMANDS, Clone(tmp_path / "minipaged")).go()


# Options and variables -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The table as the site has it: every name of a first cell -> the row's cells."""
    page = hook.on_page_markdown((REFERENCE / "options.md").read_text(encoding="utf-8"))
    table: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (?!\*\*|name )(.+) \|$", page, re.M):
        cells = re.split(r"(?<!\\) \| ", line)
        assert len(cells) == 5 and all(cell.strip() for cell in cells), line
        for name in re.findall(r"`([^`]+)`", cells[0]):
            table.setdefault(name, []).append(line)
    return table


def test_the_table_is_one_table() -> None:
    page = hook.on_page_markdown((REFERENCE / "options.md").read_text(encoding="utf-8"))
    lines = [number for number, line in enumerate(page.splitlines()) if line.startswith("|")]
    assert all(b == a + 1 for a, b in pairwise(lines))


def test_every_field_is_in_the_table(rows: dict[str, list[str]]) -> None:
    for kind in (EngineConfig, SamplingParams):
        for field in fields(kind):
            [row] = [row for row in rows[field.name] if f'id="{kind.__name__}.{field.name}"' in row]
            assert f"`{field.default!r}`" in row


def python_files(*tops: str) -> Iterator[tuple[Path, ast.Module]]:
    for top in tops:
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_every_option_of_the_code_is_in_the_table(rows: dict[str, list[str]]) -> None:
    not_of_a_command = {"factory.py", "compiled.py"}  # programs of their own, for whoever makes the model
    count = 0
    for path, tree in python_files("minipaged", "lessons"):
        if path.name in not_of_a_command or "mistakes" in path.parts:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and str(argument.value).startswith("--"):
                        count += 1
                        option = argument.value
                        assert option in rows or option == "--blocks", f"{path.name}: {option}"
    assert count > 50


def test_what_the_commands_take_is_in_the_table(rows: dict[str, list[str]]) -> None:
    for option in hook.taken():
        slug = re.sub(r"[-\s]+", "-", re.sub(r" run \d+$", " run", option.command))
        every = "every [bench]" if option.command.startswith("minipaged bench ") else "-"
        assert any(f"#{slug})" in row or every in row for row in rows[option.name]), option


def variables_of(tree: ast.AST) -> Iterator[str]:
    """The environment variables that code names: reads, sets, takes away."""

    def is_environment(node: ast.AST) -> bool:
        return bool(re.search(r"environ\b|environment\b", ast.unparse(node)))

    for node in ast.walk(tree):
        named: list[ast.AST | None] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_environment = node.func.attr in ("get", "setdefault", "pop") and is_environment(node.func.value)
            if of_environment or node.func.attr in ("getenv", "setenv", "delenv"):
                named = [node.args[0]]
        elif isinstance(node, ast.Subscript) and is_environment(node.value):
            named = [node.slice]
        elif isinstance(node, ast.Compare) and any(map(is_environment, node.comparators)):
            named = [node.left]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and is_environment(node):
            named = [key for side in (node.left, node.right) if isinstance(side, ast.Dict) for key in side.keys]
        elif isinstance(node, ast.Dict) and any(
            key is None and is_environment(value) for key, value in zip(node.keys, node.values, strict=True)
        ):
            named = list(node.keys)
        for name in named:
            if (
                isinstance(name, ast.Constant)
                and isinstance(name.value, str)
                and re.fullmatch(r"[A-Z_0-9]+", name.value)
            ):
                yield name.value


def named_in_the_code() -> dict[str, str]:
    named: dict[str, str] = {}
    for path, tree in python_files("minipaged", "kernels", "lessons", "tests", "docs"):
        named |= dict.fromkeys(variables_of(tree), path.name)
    script = ROOT / ".ci" / "run"
    if script.exists():
        named |= dict.fromkeys(re.findall(r"\$\{([A-Z_]+):-", script.read_text(encoding="utf-8")), ".ci/run")
    return named


def test_every_variable_that_the_code_names_is_in_the_table(rows: dict[str, list[str]]) -> None:
    named = named_in_the_code()
    assert {"MINIPAGED_DEBUG", "NO_COLOR", "OMP_NUM_THREADS", "PYTHONPATH", "MINIPAGED_UPDATE_DOCS", "TERM"} <= set(
        named
    )
    for name, where in named.items():
        assert name in rows, (
            f"{where} names the environment variable {name}; docs/reference/options.md has no row for it"
        )


def test_the_table_has_no_variable_that_nobody_reads(rows: dict[str, list[str]]) -> None:
    named = named_in_the_code()
    libraries = ("torch", "Numba", "Triton", "rich", "Python", "vLLM")
    for name, lines in rows.items():
        if re.fullmatch(r"[A-Z_0-9]{3,}", name):
            reader = lines[0].rpartition(" | ")[2]
            assert name in named or reader.startswith(libraries) or (name == "PYTHON" and ".ci/run" in reader), name


# The trace format ----------------------------------------------------------------------------------------------------

FORMAT = REFERENCE / "trace_format.md"
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```(?:\n\n<!-- printed -->\n\n```text\n(?P<text>.*?)^```)?$", re.M | re.S
)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page's code makes; what it prints is compared on the way."""
    namespace: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block["code"], FORMAT.name, "exec"), namespace)
        if UPDATE and block["text"] is not None:
            return block[0][: block.start("text") - block.start()] + out.getvalue() + "```"
        assert out.getvalue() == (block["text"] or "")
        return block[0]

    updated = _BLOCK.sub(run, FORMAT.read_text(encoding="utf-8"))
    if UPDATE:
        FORMAT.write_text(updated, encoding="utf-8")
    return namespace


def runs() -> Iterator[LiveTrace]:
    """Runs in which everything happens; one that is recorded late, and one of which a step was missed."""
    example = example_trace()
    assert isinstance(example, LiveTrace)
    yield example
    for seed in range(6):
        house = House(12, 4, host_blocks=5 * (seed % 2), budget=16, max_sequences=4)
        for number in range(seed):
            house.add([1, 2, 3, number], max_tokens=8)
            house.step()
        trace, _ = recorded(house)
        for number in range(9):
            house.add([1, 2, 3, 4, 5, 6, *range(11 * number, 12 * number)], max_tokens=16, n=1 + number % 3)
        for number in range(60):
            if seed and number == 10 * seed:  # as after a Ctrl-C: a step that nobody was told of
                house.engine.listeners, kept = [], house.engine.listeners
                house.step()
                house.engine.listeners = kept
            house.step()
        yield trace


def test_the_reader_of_the_page_says_what_ours_says(page: dict[str, Any], tmp_path: Path) -> None:
    num_steps = num_shared = num_anew = 0
    for trace in runs():
        path = tmp_path / "run.trace"
        path.write_bytes(b"".join(trace.lines))
        num_anew += sum(b'"anew"' in line for line in trace.lines)
        with TraceReader(path) as ours, open(path, "rb") as file:
            theirs = list(page["owners"](file))
            assert len(theirs) == len(ours)
            for index, (step, held) in enumerate(theirs):
                moment = ours.moment(index)
                expected = {state.block: list(state.holders) for state in moment.device_blocks if state.holders}
                assert (step, held) == (moment.record.step, expected)
                num_steps += 1
                num_shared += any(len(holders) > 1 for holders in held.values())
        steps = [line for line in trace.lines if not line.startswith(b'{"keyframe"')]
        cut = [*steps[:-1], steps[-1][:-7]]
        assert list(page["owners"](cut)) == theirs[:-1]
    assert num_steps > 300 and num_shared > 100 and num_anew > 5


def test_the_reader_of_the_page_knows_another_version(page: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="version 2"):
        list(page["owners"]([b'{"minipaged_trace":3}\n']))


def test_the_reader_is_as_short_as_it_says_and_needs_nothing() -> None:
    [code] = [
        block["code"] for block in _BLOCK.finditer(FORMAT.read_text(encoding="utf-8")) if "def owners" in block["code"]
    ]
    assert len(code.strip().splitlines()) <= 36
    assert re.findall(r"^(?:import|from) (\w+)", code, re.M) == ["json"]


def test_every_key_is_explained() -> None:
    text = FORMAT.read_text(encoding="utf-8")
    header, step, keyframe = (
        set(re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\| ([^|]+) \|", part, re.M))))
        for part in (_part(text, "## The header"), _part(text, "## A step's line"), _part(text, "## Keyframes"))
    )
    assert header == {"minipaged_trace", "counts", *(field.name for field in fields(TraceHeader))}
    assert step == KEYS
    assert keyframe == set(TraceState(TraceHeader(1, 0, 1, 0, 1, 1, ""), []).keyframe())


def _part(text: str, heading: str) -> str:
    return text.split(f"{heading}\n")[1].split("\n#")[0]


def test_what_a_broken_file_gives_is_what_the_page_says(page: dict[str, Any], tmp_path: Path) -> None:
    lines: list[bytes] = page["trace"].lines
    header = json.loads(lines[0])
    other = json.loads(lines[3])
    keyframe = next(place for place, line in enumerate(lines) if line.startswith(b'{"keyframe"'))
    assert keyframe == 4
    wrong = lines[keyframe].replace(b'"waiting":[]', b'"waiting":[[0,1,2,3]]')
    damaged = {
        "is empty": [],
        "is of another version": [_line(header | {"minipaged_trace": 1}), *lines[1:]],
        "has a header": [_line(header | {"num_blocks": 0}), *lines[1:]],
        "has a line that is no line": [*lines[:3], _line(other | {"colour": 1})],
        "lacks a line": [*lines[:3], lines[5]],
        "has a line twice": [*lines[:3], lines[2]],
        "has a keyframe": [*lines[:keyframe], wrong, *lines[keyframe + 1 :]],
    }
    part = _part(FORMAT.read_text(encoding="utf-8"), "## What a broken file gives")
    table = dict(re.findall(r"^\| (.+?) \| .*`([^`]+)` \|$", part, re.M))
    assert len(table) == len(damaged) + 1
    path = tmp_path / "small.trace"
    for beginning, content in damaged.items():
        [said] = [said for what, said in table.items() if what.startswith(beginning)]
        path.write_bytes(b"".join(content))
        with pytest.raises(ValueError) as caught:
            TraceReader(path)
        assert re.sub(r"^trace .*?small\.trace[:,] ", "", str(caught.value)) == said
    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    with TraceReader(path) as reader:
        assert reader.notice is not None and reader.notice.endswith(table["its last line is cut off"])


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
