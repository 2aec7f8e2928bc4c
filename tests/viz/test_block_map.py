"""What the map says is what the books say: printed, read back, and compared with `KVManager`, step by step."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from minipaged.memory.kv_manager import KVManager
from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.recorder import Recorder
from minipaged.trace import Moment, SequenceState, StepRecord, Trace, TraceHeader
from minipaged.trace_file import LiveTrace
from minipaged.viz.block_map import block_map
from minipaged.viz.changes import BlockChange, marks
from minipaged.viz.history import History
from minipaged.viz.picture import Picture
from minipaged.viz.sequence_view import block_tables
from minipaged.viz.theme import Theme, letter, name
from tests.viz.reading import read_map, read_tables
from tests.viz.witnessed import Witnessed, random_run

THEMES = [Theme(unicode, colors) for unicode in (True, False) for colors in ("full", "16", "none")]


def printed(picture: Picture, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(picture)
    return out.getvalue()


class Compare:
    """A listener that draws the newest moment of a trace, reads it back, and asks the books."""

    def __init__(self, run: Witnessed, trace: Trace, theme: Theme) -> None:
        self.run = run
        self.trace = trace
        self.theme = theme
        self.num_shared = self.num_evictable = self.num_sole = self.num_clean = 0

    def __call__(self, record: StepRecord) -> None:
        history = History(self.trace)
        index = len(self.trace) - 1
        assert history.moment(index).record.step == record.step
        moment, changes = history.moment(index), history.facts(index).changes
        device, host = read_map(printed(block_map(moment, changes, self.theme, 110, 20), 110))
        memory, scheduler, glyphs = self.run.house.memory, self.run.house.scheduler, self.theme.glyphs
        tables = read_tables(printed(block_tables(moment, changes, self.theme, 300, 20), 300), self.theme)
        assert tables == {name(s.id): list(memory.table(s)) for s in scheduler.running}
        assert len(device) == memory.pool.num_blocks
        free, evictable = set(memory.pool.free_blocks), set(memory.pool.eviction_order)
        for block, cell in enumerate(device):
            holders = [s for s in scheduler.running if block in memory.table(s)]
            assert len(holders) == memory.pool.count(block)
            if block in free:
                assert (cell.who, cell.fill) == (glyphs.free, " ")
            elif block in evictable:
                assert (cell.who, cell.fill) == (glyphs.evictable, glyphs.fill[-1])
            elif len(holders) == 1:
                assert cell.who == letter(holders[0].id)
            else:
                assert cell.who == str(len(holders))
            for holder in holders:
                place = memory.table(holder).index(block)
                num_filled = min(memory.block_size, holder.num_computed - place * memory.block_size)
                if num_filled == memory.block_size:
                    assert cell.fill == glyphs.fill[-1]
                elif len(holders) == 1:
                    assert cell.fill == self.theme.fill(num_filled, memory.block_size) != glyphs.fill[-1]
            self.num_shared += len(holders) > 1
            self.num_evictable += block in evictable
        swap = memory.swap
        assert len(host) == (swap.num_blocks if swap else 0)
        for block, cell in enumerate(host):
            assert swap is not None
            clean, sole = swap.is_clean(block), block in swap.drop_order and not swap.is_clean(block)
            assert cell.who == (glyphs.clean if clean else glyphs.sole if sole else glyphs.free)
            self.num_sole += sole
            self.num_clean += clean


@pytest.mark.parametrize("theme", THEMES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_map_says_what_the_books_say(seed: int, theme: Theme) -> None:
    """As recorded: scheduler and memory, recorder, deltas, moment, picture, and back."""
    comparisons: list[Compare] = []

    def begin(run: Witnessed) -> None:
        trace = LiveTrace()
        Recorder(run.house.engine, trace)
        comparisons.append(Compare(run, trace, theme))
        run.house.engine.listeners.append(comparisons[0])

    random_run(seed, host_blocks=24, begin=begin)
    seen = comparisons[0]
    assert seen.num_shared and seen.num_evictable and seen.num_sole and seen.num_clean, "the run showed it all"


def test_it_says_the_same_without_a_host_pool() -> None:
    def begin(run: Witnessed) -> None:
        run.house.engine.listeners.append(Compare(run, run, Theme()))

    run = random_run(7, host_blocks=0, begin=begin)
    assert "host" not in block_map(run.moment(5), (), Theme(), 100, 20).plain


def test_marks_of_this_step() -> None:
    """Every operation of a step leaves its mark, on the device and on the host."""
    run = random_run(1)
    history = History(run)
    num_marked = 0
    for index in range(len(run)):
        moment, changes = run.moment(index), history.facts(index).changes
        device, host = read_map(block_map(moment, changes, Theme(), 110, 20).plain)
        for operation in moment.record.operations:
            match operation:  # of several changes of one block, the rarest is marked
                case SwapOut(block, host_block):
                    assert device[block].mark == host[host_block].mark == "↑"
                case SwapIn(host_block, block):
                    assert device[block].mark in "↓↑x"
                    assert host[host_block].mark in "↓↑x"
                case CopyBlock(_, block):
                    assert device[block].mark in "»↑x"
                case _:
                    continue
            num_marked += 1
    assert num_marked > 100


# Pools that are larger than the panel ------------------------------------------------------------------------------


def pool(num_blocks: int, tables: Mapping[int, tuple[int, ...]], block_size: int = 4) -> Moment:
    """A moment in which sequences hold these full blocks, and nothing else is there."""
    header = TraceHeader(num_blocks, 0, block_size, 0, 64, 64, "")
    running = tuple(
        SequenceState(id, id, 0, True, 1, len(blocks) * block_size + 1, len(blocks) * block_size, 0, blocks)
        for id, blocks in tables.items()
    )
    record = StepRecord(0, 0.0, 0.0, (), (), len(tables), 0, num_blocks * block_size, 0, 0)
    return Moment(header, record, running, (), {}, {})


@pytest.mark.parametrize("num_blocks", [1, 7, 100, 999, 1000, 10_000, 65_537])
@pytest.mark.parametrize(("width", "height"), [(60, 6), (80, 12), (200, 30)])
def test_a_large_pool_is_summarised_and_says_so(num_blocks: int, width: int, height: int) -> None:
    picture = block_map(pool(num_blocks, {0: tuple(range(num_blocks))}), (), Theme(), width, height)
    assert len(picture) <= height
    title, *rows = picture.plain.splitlines()
    num_cells = sum(row.count("A█") for row in rows)
    assert rows[0].split()[0] == "0"
    if num_cells == num_blocks:
        assert "per cell" not in title
    else:
        per_cell = int(title.split(", ")[1].split(" blocks per cell")[0])
        assert num_cells == -(-num_blocks // per_cell)
        assert per_cell > 1


def test_a_cell_for_many_blocks_says_what_they_have_in_common() -> None:
    tables = {0: (0, 1, 2, 3, 4, 8), 1: (5, 6, 7)}
    moment = pool(1024, tables)
    picture = block_map(moment, (), Theme(), 60, 10)
    title, first, *_ = picture.plain.splitlines()
    assert ", 8 blocks per cell" in title, title
    # 0–7: two owners, all full; 8–15: A alone, one full block of eight; then nothing
    assert first.split()[1:4] == ["*█", "A▁", "·"]


def test_a_cell_for_many_blocks_marks_the_rarest_change() -> None:
    kinds = {1: "new", 2: "swapped out", 3: "released", 9: "new"}
    changes = [BlockChange("device", block, kind, "") for block, kind in kinds.items()]
    first = block_map(pool(1024, {0: tuple(range(16))}), changes, Theme(), 60, 10).plain.splitlines()[1]
    assert first.lstrip().startswith("0 A█↑A█+")


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize(("width", "height"), [(60, 5), (60, 7), (66, 9), (80, 12), (200, 20)])
def test_signs_are_explained_however_little_room_there_is(width: int, height: int, unicode: bool) -> None:
    """At least what the step did to blocks, as far as one line goes; with room, everything."""
    run = random_run(1)
    history = History(run)
    theme = Theme(unicode)
    words = {"dropped": "evicted", "shared": "one more holder"}
    for index in range(len(run)):
        changes = history.facts(index).changes
        lines = block_map(run.moment(index), changes, theme, width, height).plain.splitlines()
        legend = [line for line in lines if " owner" in line or re.match(r"\S [a-z]+", line)]
        assert legend, lines
        for kind in sorted(set(marks(changes, "device").values()))[:2]:
            said = f"{theme.glyphs.marks[kind]} {words.get(kind, kind)}"
            assert any(said in line for line in legend), (said, lines)


def test_a_crowded_pool_explains_what_is_on_it() -> None:
    changes = [BlockChange("device", 1, "swapped out", ""), BlockChange("device", 2, "new", "")]
    lines = block_map(pool(1024, {0: (0, 1), 1: (2,), 2: (2,)}), changes, Theme(), 66, 6).plain.splitlines()
    assert lines[-1] == "+ new  ↑ swapped out  A owner  2 shared by 2  ▁▄█ how full"
    assert len(lines) == 6


def test_ten_and_more_share_a_block() -> None:
    tables: dict[int, tuple[int, ...]] = dict.fromkeys(range(9), (0,))
    assert "9█" in block_map(pool(8, tables), (), Theme(), 60, 9).plain
    tables[9] = (0,)
    assert "#█" in block_map(pool(8, tables), (), Theme(), 60, 9).plain


def test_full_looks_unlike_almost_full() -> None:
    for theme in (Theme(True), Theme(False)):
        levels = [theme.fill(n, 256) for n in range(257)]
        assert levels[0] == theme.glyphs.fill[0] and levels[-1] == theme.glyphs.fill[-1]
        assert levels[1] not in (levels[0], levels[-1]) and levels[255] != levels[256]
        assert [theme.glyphs.fill.index(level) for level in levels] == sorted(map(theme.glyphs.fill.index, levels))


def test_the_selected_and_the_followed_stand_out() -> None:
    moment = pool(8, {0: (0, 1), 1: (2,)})
    line = block_map(moment, (), Theme(colors="none"), 60, 9, follow=0, selected=2).lines[1]
    styles: dict[str, Any] = {line.plain[span.start : span.end]: span.style for span in line.spans}
    assert styles["A█"].underline and not styles["A█"].dim
    assert styles["B█"].dim and styles["B█"].reverse


def test_the_second_witness_is_the_books() -> None:
    """`Witnessed` itself takes from the manager what the comparison above takes from it."""
    run = random_run(2)
    assert isinstance(run.house.memory, KVManager)
    last = run.moment(len(run) - 1)
    assert last.counts["evictable_blocks"] == sum(
        not block.holders and block.node is not None for block in last.device_blocks
    )
