"""Reads printed pictures back, as a person would: letters, glyphs and numbers, and no colour."""

from __future__ import annotations

import re
from dataclasses import dataclass

from minipaged.viz.theme import Theme


@dataclass(frozen=True)
class ReadCell:
    """Two characters and a mark."""

    who: str
    fill: str
    mark: str


def read_map(printed: str) -> tuple[list[ReadCell], list[ReadCell]]:
    """(device pool, host pool) of a printed block map, whose cells are as wide as its rows say."""
    pools: dict[str, list[str]] = {"device": [], "host": []}
    here = None
    for line in printed.splitlines():
        if title := re.match(r"(device|host) pool", line):
            here = title[1]
        elif here and re.match(r" *\d+ \S", line) and not line.startswith("2 shared"):
            pools[here].append(line)
        else:
            here = None
    device, host = (_cells(rows) for rows in (pools["device"], pools["host"]))
    return device, host


def _cells(rows: list[str]) -> list[ReadCell]:
    cells = []
    for i, row in enumerate(rows):
        found = re.match(r" *(\d+) ", row)
        assert found
        assert int(found[1]) == len(cells), f"row {i} says that it begins with block {found[1]}"
        rest = row[found.end() :]
        for place in range(0, len(rest), 4):
            who, fill, mark, gap = rest[place : place + 4].ljust(4)
            assert gap == " ", f"cells are not four wide in {row!r}"
            cells.append(ReadCell(who, fill, mark))
    return cells


def read_tables(printed: str, theme: Theme) -> dict[str, list[int]]:
    """The block tables: name -> physical blocks in logical order."""
    tables = {}
    for line in printed.splitlines():
        pairs = re.findall(rf" (\d+){re.escape(theme.glyphs.arrow)}(\d+)", line)
        if pairs:
            assert [int(logical) for logical, _ in pairs] == list(range(len(pairs))), line
            tables[line.split()[0]] = [int(block) for _, block in pairs]
    return tables
