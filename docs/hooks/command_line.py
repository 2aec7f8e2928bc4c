"""An mkdocs hook: fills pages from the program itself, so that they cannot say what it does not do.

In a page, a line `<!-- options: minipaged watch -->` becomes that command's options, read from its argparse parser; a
line `<!-- options table -->` before a table becomes further rows of it: every field of `EngineConfig` and
`SamplingParams`, and every option of every command. What is said about them is what `--help` and the docstrings say.

Knows parsers and dataclasses; what a command is for, its page says by hand.
"""

from __future__ import annotations

import argparse
import html
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any

import clone  # noqa: F401

from lessons.runner import commands as lessons
from lessons.runner.lesson import catalogue
from lessons.runner.stage import command_line
from minipaged import cli
from minipaged.config import EngineConfig
from minipaged.sampling_params import SamplingParams

_PLACE = re.compile(r"^<!-- options: (?P<command>[^\n]+?) -->$", re.M)
_TABLE = re.compile(r"^<!-- options table -->\n\n(?P<head>\|[^\n]*\n\|[-|: ]+\n)", re.M)

LESSONS = "python -m lessons"
# What the docstrings say in words, for the table's column of units.
UNITS = {
    "block_size": "token slots", "num_blocks": "blocks", "kv_cache_bytes": "bytes", "host_blocks": "blocks",
    "host_cache_bytes": "bytes", "share_prefixes": "yes or no", "max_batch_tokens": "tokens",
    "max_sequences": "sequences", "max_chunk_tokens": "tokens", "watermark": "share, 0 to 1", "seed": "number",
    "device": "name", "dtype": "name", "attention": "name",
    "n": "answers", "max_tokens": "tokens", "temperature": "number", "top_k": "tokens", "top_p": "probability",
    "stop": "texts", "stop_token_ids": "token ids", "ignore_eos": "yes or no", "logprobs": "tokens",
}  # fmt: skip
_METAVARS = {"N": "number", "FILE": "path", "DIR": "path", "PATH": "path", "S": "seconds", "R": "requests a second"}


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Fills both kinds of places."""
    markdown = _PLACE.sub(lambda found: options_of(found["command"]), markdown)
    return _TABLE.sub(lambda found: found["head"] + "\n".join(table_rows()) + "\n", markdown)


# What there is ----------------------------------------------------------------------------------------------------


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    """Every command by what is typed, those of `python -m lessons` too, in the order in which they are listed."""
    top = cli._parser([])
    found = {"minipaged": top}
    for name in _children(top):
        command = _children(cli._parser([name]))[name]
        found[f"minipaged {name}"] = command
        found |= {f"minipaged {name} {child}": parser for child, parser in _children(command).items()}
    found[LESSONS] = lessons._parser()
    for name, parser in _children(found[LESSONS]).items():
        found[f"{LESSONS} {name}"] = parser
    # What stands behind `run N` is the lesson's own command line; these options all of them have.
    run = found[f"{LESSONS} run"]
    for action in command_line(catalogue()[0])._actions:
        if action.option_strings and not {"--help", "--workbook"} & set(action.option_strings):
            run._add_action(action)
    for lesson in catalogue():
        if "def add_arguments" in (lesson.folder / "__main__.py").read_text(encoding="utf-8"):
            own = found[f"{LESSONS} run {lesson.number}"] = argparse.ArgumentParser()
            import_module(f"lessons.{lesson.slug}.__main__").add_arguments(own)
    return found


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """What can be given, without --help, sub-commands, and what is not told of."""
    for action in parser._actions:
        hidden = action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction)
        if not hidden and action.dest != "help":
            yield action


def spelling(action: argparse.Action) -> str:
    """As it is typed: `--num-blocks N`, `PROMPT …`."""
    value = ""
    if action.nargs != 0:
        value = action.metavar or (action.dest.upper() if not action.choices else "NAME")
        assert isinstance(value, str)
        if action.nargs == "+":
            value += " …"
        elif action.nargs == "?":
            value = f"[{value}]"
    return " ".join(part for part in (", ".join(action.option_strings), value) if part)


def meaning(action: argparse.Action) -> str:
    """The help text, and what may be chosen where it does not say so."""
    text = action.help or ""
    assert text, f"{action.option_strings} has no help"
    if action.choices and not all(str(choice) in text for choice in action.choices):
        text += f"; one of {', '.join(map(str, action.choices))}"
    return text + ("; required" if action.option_strings and action.required else "")


# A command's options ----------------------------------------------------------------------------------------------


def options_of(command: str) -> str:
    """A list for each group of options, in HTML: the spelling on a line of its own, so that it fits a phone.

    Raises:
        KeyError: there is no such command.
    """
    parser = parsers()[command]
    parts = []
    summaries = {name: child.description or "" for name, child in _children(parser).items()}
    if summaries:
        parts.append(_list((f"{command} {name}", None, _plain(text)) for name, text in summaries.items()))
    for group in parser._action_groups:
        shown = [action for action in actions(parser) if action in group._group_actions]
        # An action that was taken over from another parser is in no group of this one.
        if group.title == "options":
            grouped = {id(action) for other in parser._action_groups for action in other._group_actions}
            shown += [action for action in actions(parser) if id(action) not in grouped]
        if shown:
            if group.title not in ("positional arguments", "options"):
                parts.append(f"<p>{html.escape((group.title or '').capitalize())}:</p>")
            parts.append(_list((spelling(a), anchor(command, a), _plain(meaning(a))) for a in shown))
    if not parts:
        return "It takes no options."
    return "\n".join(parts)


def anchor(command: str, action: argparse.Action) -> str:
    """`minipaged watch --speed` -> `watch--speed`."""
    name = action.option_strings[0] if action.option_strings else f"-{action.dest}"
    return command.removeprefix("minipaged ").replace(LESSONS, "lessons").replace(" ", "-") + name


def _list(entries: Iterator[tuple[str, str | None, str]] | Any) -> str:
    lines = ['<dl class="options">']
    for typed, id, text in entries:
        name = f' id="{id}"' if id else ""
        lines.append(f"<dt{name}><code>{html.escape(typed)}</code></dt><dd>{text}</dd>")
    return "\n".join([*lines, "</dl>"])


def _plain(text: str) -> str:
    """Help text as HTML: `x` is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


# The table of all options -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """An option, and a command that takes it."""

    command: str
    action: argparse.Action

    @property
    def name(self) -> str:
        """The option as it is typed, the long spelling first."""
        return max(self.action.option_strings, key=len)


def taken() -> list[Taken]:
    """Every option of every command."""
    return [
        Taken(command, action)
        for command, parser in parsers().items()
        for action in actions(parser)
        if action.option_strings
    ]


def table_rows() -> list[str]:
    """The rows of the table, in Markdown."""
    all_taken = taken()
    rows: list[str] = []
    done: set[int] = set()
    for kind in (EngineConfig, SamplingParams):
        rows.append(_row(f"**The fields of `{kind.__name__}`**"))
        meanings = arguments(inspect.getdoc(kind) or "")
        for field in fields(kind):
            mine = [option for option in all_taken if field_of(option) == (kind, field.name)]
            done |= {id(option) for option in mine}
            default = None if field.default is MISSING else field.default
            typed = sorted({option.name for option in mine})
            names = [f'<span id="{kind.__name__}.{field.name}"></span>`{field.name}`', *(f"`{name}`" for name in typed)]
            defaults = [f"`{default!r}`", *_other_defaults(field.name, default, mine)]
            takers = [f"`{kind.__name__}`", *dict.fromkeys(_link(option.command) for option in mine)]
            rows.append(
                _row(", ".join(names), "; ".join(defaults), UNITS[field.name], meanings[field.name], ", ".join(takers))
            )
    rows.append(_row("**Options of the commands**"))
    rest = [option for option in all_taken if id(option) not in done]
    for name in sorted({option.name for option in rest}, key=lambda name: name.lstrip("-")):
        mine = [option for option in rest if option.name == name]
        texts = {option.command: _split_default(option.action) for option in mine}
        defaults = _by_command({command: default for command, (_, default) in texts.items()})
        what = _by_command({command: text for command, (text, _) in texts.items()})
        units = dict.fromkeys(_unit(option.action) for option in mine)
        rows.append(_row(f"`{name}`", defaults, ", ".join(units), what, _links([option.command for option in mine])))
    rows.append(_row("**Environment variables**"))
    return rows


def field_of(option: Taken) -> tuple[type, str] | None:
    """The field that an option sets, where it sets one: an option of `generate`, `watch` or `demo`."""
    if option.command not in ("minipaged generate", "minipaged watch", "minipaged demo"):
        return None
    if (option.command, option.name) == ("minipaged demo", "--seed"):  # it shuffles arrivals
        return None
    for kind in (SamplingParams, EngineConfig):  # `generate --seed` is the request's
        if option.action.dest in {field.name for field in fields(kind)}:
            return kind, option.action.dest
    return None


def arguments(doc: str) -> dict[str, str]:
    """What a Google-style docstring says of each argument."""
    section = re.search(r"^Args:\n(?P<body>(?:[ ]+.*\n?|\n(?=[ ]))*)", doc, re.M)
    found: dict[str, str] = {}
    for entry in re.split(r"^    (?=\S)", section["body"], flags=re.M)[1:] if section else ():
        name, _, text = entry.partition(":")
        found[name.strip().lstrip("*")] = " ".join(text.split())
    return found


def _other_defaults(name: str, default: Any, mine: list[Taken]) -> list[str]:
    """Where a command has a default of its own."""
    found = []
    for option in mine:
        value = option.action.default
        if option.command in ("minipaged watch", "minipaged generate"):  # theirs are stated, and filled in later
            stated = re.search(r"\(default (\d+)\)", option.action.help or "")
            value = int(stated[1]) if stated else None
            value = 0 if (option.command, name) == ("minipaged generate", "temperature") else value
        if value is not None and value != default and value != [] and not (value is False and not default):
            found.append(f"`{value}` in {_link(option.command)}")
    return found


def _split_default(action: argparse.Action) -> tuple[str, str]:
    """The meaning without what it says of the default; and that."""
    text = meaning(action)
    stated = re.search(r" ?\(default:? (?P<default>[^()]+)\)|(?P<name>\w+) \(the default\)", text)
    if stated and stated["default"]:
        return text.replace(stated[0], ""), stated["default"]
    return text, stated["name"] if stated else "off" if action.nargs == 0 else "none"


def _unit(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "yes or no"
    if action.choices:
        return "name"
    return UNITS.get(action.dest) or _METAVARS.get(str(action.metavar), "text")


def _by_command(said: dict[str, str]) -> str:
    """What is said of all commands, or of which of them what."""
    commands: dict[str, list[str]] = {}
    for command, text in said.items():
        commands.setdefault(text, []).append(command)
    if len(commands) == 1:
        return next(iter(commands))
    return "; ".join(f"{text} ({_links(of)})" for text, of in commands.items())


def _links(commands: list[str]) -> str:
    """To the commands' parts of the page; all benchmarks are one."""
    benchmarks = [command for command in parsers() if command.startswith("minipaged bench ")]
    if set(benchmarks) <= set(commands):
        others = [command for command in commands if command not in benchmarks]
        return ", ".join([*map(_link, others), "every " + _link("minipaged bench")])
    return ", ".join(map(_link, commands))


def _link(command: str) -> str:
    slug = re.sub(r"[-\s]+", "-", re.sub(r" run \d+$", " run", command))
    shown = command if command == "minipaged" else command.removeprefix("minipaged ").replace(LESSONS, "lessons")
    return f"[{shown}](command_line.md#{slug})"


def _row(*cells: str) -> str:
    padded = [*cells, *[""] * (5 - len(cells))]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("{", "&#123;") for cell in padded) + " |"
