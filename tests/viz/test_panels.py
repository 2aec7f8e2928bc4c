"""Each panel's numbers are the record's, the trace's, the memory's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.text import Text

from minipaged.trace import ChunkRecord, Moment, StepRecord, Trace
from minipaged.viz.example import example_trace
from minipaged.viz.gauges import gauges, tokens_per_second
from minipaged.viz.history import History
from minipaged.viz.life import block_life, sequence_life
from minipaged.viz.picture import Picture, Section, flowed, heading, stacked
from minipaged.viz.sequence_view import block_tables, queue
from minipaged.viz.step_view import composition, shares
from minipaged.viz.theme import Theme, name, sequence_named
from minipaged.viz.timeline import timeline
from minipaged.viz.tree_view import prefix_tree
from tests.house import House
from tests.viz.witnessed import Witnessed, random_run

EXAMPLE = History(example_trace())
THEME = Theme()


# The step ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(0, len(EXAMPLE), 4))
def test_composition_adds_up_to_the_budget(index: int) -> None:
    record = EXAMPLE.facts(index).record
    text = composition(record, EXAMPLE.header, THEME, 100, 10).plain
    parts = {role: int(count) for role, count in re.findall(r"(prefill|recompute|decode|unused) (\d+)", text)}
    assert sum(parts.values()) == EXAMPLE.header.max_batch_tokens
    assert parts["unused"] == EXAMPLE.header.max_batch_tokens - record.num_tokens
    assert parts["recompute"] == sum(chunk.num_recomputed for chunk in record.chunks)
    bar = text.splitlines()[1]
    assert len(bar) == 100
    for chunk in record.chunks:
        last = f":{chunk.start + chunk.num_tokens}" if chunk.num_tokens > 1 else ""
        assert re.search(rf"\b{name(chunk.sequence)} . {chunk.start}{last}(\s|$)", text)


def test_a_recomputed_chunk_is_split_into_its_parts() -> None:
    chunk = ChunkRecord(
        sequence=0, request=0, start=0, num_tokens=10, num_recomputed=7, kind="recompute", block_table=()
    )
    record = replace(EXAMPLE.facts(0).record, chunks=(chunk,))
    text = composition(record, EXAMPLE.header, THEME, 60, 10).plain
    assert "prefill 3" in text and "recompute 7" in text and "decode 0" in text


def test_shares_fill_the_bar_and_hide_nothing() -> None:
    assert shares([1, 0, 999], 10) == [1, 0, 9]
    assert shares([1, 1, 1], 10) == [4, 3, 3]
    assert shares([0, 0], 10) == [0, 0]
    assert shares([5, 5], 1) in ([1, 0], [0, 1])
    for cells in range(1, 40):
        assert sum(shares([3, 1, 7, 2000], cells)) == cells


# Tables and queue --------------------------------------------------------------------------------------------------


def test_a_table_that_is_too_long_keeps_its_beginning_and_its_end() -> None:
    house = House(64, 4)
    run = Witnessed(house)
    house.add(202, 3)
    house.run()
    line = block_tables(run.moment(0), (), THEME, 60, 5).plain.splitlines()[1]
    assert line.startswith("A  0→0 …") and line.rstrip().endswith("50→50 (2/4)")
    assert cell_len(line) <= 60


@pytest.mark.parametrize("cause", ["no blocks", "no budget", "no place", "memory was just found too small", None])
@pytest.mark.parametrize("width", [47, 51, 60, 100])  # 47: the column of the narrowest overview that has two
def test_a_reason_is_said_shorter_before_it_is_cut(cause: str | None, width: int) -> None:
    index = next(i for i in range(len(EXAMPLE)) if EXAMPLE.moment(i).waiting)
    moment = EXAMPLE.moment(index)
    first = replace(moment.waiting[0], num_preemptions=12, sequence=80)
    header = replace(moment.header, max_batch_tokens=16384, max_sequences=1024)
    record = replace(moment.record, waiting_cause=cause)
    line = queue(replace(moment, header=header, waiting=(first,), record=record), THEME, width, 2).plain.splitlines()[1]
    assert THEME.glyphs.cut not in line.split("  ")[0] and line.startswith("c2 preempted 12×, ")
    assert len(line) <= width


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("no blocks", "no blocks: needs up to 8, 5 can be had now"),
        ("no budget", "no budget: the step's 24 tokens were given out"),
        ("no place", "no place: 5 sequences run at most"),
        ("memory was just found too small", "memory was just found too small"),
        (None, "came when the step was planned"),
    ],
)
def test_the_queue_says_why(cause: str | None, words: str) -> None:
    index = next(i for i in range(len(EXAMPLE)) if len(EXAMPLE.moment(i).waiting) > 1)
    moment = EXAMPLE.moment(index)
    counts = {**moment.counts, "free_blocks": 2, "evictable_blocks": 3}
    moment = replace(moment, record=replace(moment.record, waiting_cause=cause), counts=counts)
    _, first, second = queue(moment, THEME, 100, 3).plain.splitlines()
    assert first.startswith(f"{name(moment.waiting[0].sequence)}  {words}  30+0 tokens  a long question")
    assert f"behind {name(moment.waiting[0].sequence)}" in second


def test_who_was_preempted_is_said_and_who_is_followed_is_shown() -> None:
    run = random_run(1)
    moment = next(
        moment
        for moment in run.moments
        if len(moment.waiting) > 3 and any(waiting.num_preemptions for waiting in moment.waiting)
    )
    whole = queue(moment, THEME, 80, 40).plain
    again = [waiting for waiting in moment.waiting if waiting.num_preemptions]
    assert whole.count("preempted") == len(again)
    last = moment.waiting[-1].sequence
    shown = queue(moment, THEME, 80, 3, follow=last).plain.splitlines()
    assert shown[0].endswith(f"{len(moment.waiting)} waiting, 2 shown")
    assert shown[2].split()[0] == name(last)
    assert queue(replace(moment, waiting=()), THEME, 30, 3).plain == "queue ────────────── 0 waiting\n"


# Time --------------------------------------------------------------------------------------------------------------


def test_the_timeline_says_what_each_step_did() -> None:
    run = random_run(2)
    history = History(run)
    glyphs = THEME.glyphs
    kinds = {glyphs.prefill: "prefill", glyphs.recompute: "recompute", glyphs.decode: "decode", " ": None}
    kinds |= {glyphs.waits: "waits", glyphs.waits_again: "preempted", glyphs.preempted: "preempt", glyphs.wall: None}
    seen = set()
    rows = timeline(history, 40, THEME, 4 + len(run), 60).plain.splitlines()[2:]
    for row in rows:
        sequence = sequence_named(row[:4].strip())
        if sequence is None:
            break
        for index, glyph in enumerate(row[4:].ljust(len(run))):
            moment = run.moment(index)
            chunk = next((chunk for chunk in moment.record.chunks if chunk.sequence == sequence), None)
            waiting = next((state for state in moment.waiting if state.sequence == sequence), None)
            preempted = any(e.kind == "preempt" and e.sequence == sequence for e in moment.record.events)
            expected = chunk.kind if chunk else None
            if preempted:
                expected = "preempt"
            elif waiting and not chunk:
                expected = "preempted" if waiting.num_preemptions else "waits"
            assert kinds[glyph] == expected, (name(sequence), index)
            seen.add(expected)
    assert seen == {"prefill", "recompute", "decode", "waits", "preempted", "preempt", None}


def test_the_timeline_marks_its_step_and_keeps_who_is_there() -> None:
    for index in range(0, len(EXAMPLE), 6):
        title, ruler, *_ = timeline(EXAMPLE, index, THEME, 30, 30).plain.splitlines()
        first, last = map(int, re.findall(r"steps (\d+) to (\d+)", title)[0])
        assert first <= index <= last < len(EXAMPLE) and last - first == 25
        assert ruler.index("v") == 4 + index - first
        assert str(index) in ruler
    history = History(random_run(1))
    short = timeline(history, 32, THEME, 80, 6).plain  # title, ruler, three rows, legend
    assert f"3 of {len({s for i in range(len(history)) for s in history.facts(i).phases if i < 76})}" in short
    shown = {sequence_named(row.split()[0]) for row in short.splitlines()[2:5]}
    first_in_queue = history.moment(32).waiting[0].sequence
    assert first_in_queue in shown
    assert shown - {first_in_queue} < {chunk.sequence for chunk in history.facts(32).record.chunks}


def test_who_was_just_preempted_is_in_the_timeline() -> None:
    run = random_run(1)
    history = History(run)
    seen = 0
    for index in range(len(history)):
        preempted = {event.sequence for event in history.facts(index).record.events if event.kind == "preempt"}
        rows = timeline(history, index, THEME, 80, 8).plain.splitlines()[2:7]
        shown = {sequence_named(row.split()[0]) for row in rows if row[0].isalpha()}
        waiting = history.moment(index).waiting
        if waiting:
            assert waiting[0].sequence in shown, index
        if len(preempted) < 4:
            assert preempted <= shown, index
        seen += len(preempted)
    assert seen > 5


def test_a_sequence_has_a_life() -> None:
    text = sequence_life(EXAMPLE, len(EXAMPLE) - 1, 6, THEME, 100, 40).plain
    last = len(EXAMPLE) - 1
    events = [
        (event.kind, EXAMPLE.facts(i).record.step)
        for i in range(last, -1, -1)
        for event in reversed(EXAMPLE.facts(i).record.events)
        if event.sequence == 6
    ]
    verbs = {"ends": "finish", "admitted": "admit", "preempted": "preempt"}
    told = [(verbs[verb], int(step)) for step, verb in re.findall(r"step (\d+)  G (\w+):", text)]
    assert told == events and len(events) >= 4
    computed = sum(
        chunk.num_tokens for i in range(len(EXAMPLE)) for chunk in EXAMPLE.facts(i).record.chunks if chunk.sequence == 6
    )
    assert sum(map(int, re.findall(r"(\d+) tokens$", text, re.M))) == computed
    assert text.splitlines()[1] == "not here at this step"
    assert "prompt 3, drawn 2; preempted 0 times" in sequence_life(EXAMPLE, 21, 6, THEME, 100, 40).plain


def test_a_block_has_a_life() -> None:
    last = len(EXAMPLE) - 1
    for block in range(EXAMPLE.header.num_blocks):
        lines = block_life(EXAMPLE, last, block, THEME, 120, 100).plain.splitlines()
        steps = [int(found) for found in re.findall(r"step (\d+)  ", "\n".join(lines))]
        assert steps == sorted(steps, reverse=True)
        told = sum(
            change.block == block and change.tier == "device"
            for i in range(len(EXAMPLE))
            for change in EXAMPLE.facts(i).changes
        )
        assert len(steps) == told
        assert lines[-1].strip() == "that is all since the first recorded step"
        node = EXAMPLE.moment(last).device_blocks[block].node
        assert lines[1].startswith(
            "free" if node is None else "cached, evictable: nobody holds it; 4 of 4 slots filled"
        )
    assert "the pool has 24 blocks" in block_life(EXAMPLE, last, 24, THEME, 80, 9).plain


# The tree ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_has_every_node_once_below_its_parent(seed: int) -> None:
    run = random_run(seed, host_blocks=24)
    for moment in run.moments[::5]:
        lines = prefix_tree(moment, THEME, 4000, 1000).plain.splitlines()
        on_device = {node.device: node for node in moment.nodes.values() if node.device is not None}
        on_host = {node.host: node for node in moment.nodes.values()}
        path: list[tuple[int, int]] = []  # (indent, the last node of the line)
        found = []
        for line in lines[1:]:
            if "no full block" in line:
                continue
            drawn = re.match(r"([│├└─ ]*?[├└]─)((?: h?\d+)+)(?:  ([A-Za-z0-9, .]+?))?  tokens ([\d ]+)", line)
            assert drawn, line
            while path and path[-1][0] >= len(drawn[1]):
                path.pop()
            parent = path[-1][1] if path else None
            holders = drawn[3].split(", ") if drawn[3] else []
            tokens: list[int] = []
            for place in drawn[2].split():
                node = on_host[int(place[1:])] if place.startswith("h") else on_device[int(place)]
                assert node.parent == parent or (parent is None and node.parent not in moment.nodes)
                expected = moment.device_blocks[node.device].holders if node.device is not None else ()
                assert holders == [name(holder) for holder in expected]
                tokens += node.tokens
                parent = node.node
                found.append(node.node)
            assert tokens == [int(token) for token in drawn[4].split()]
            assert parent is not None
            path.append((len(drawn[1]), parent))
        assert sorted(found) == sorted(moment.nodes)


def test_a_tree_that_does_not_fit_says_how_much_is_left() -> None:
    moment = random_run(0).moment(40)
    shown = prefix_tree(moment, THEME, 80, 5).plain.splitlines()
    assert len(shown) == 5
    drawn = sum(len(re.findall(r"(?<= )h?\d+", line.split("tokens")[0])) for line in shown[1:-1])
    assert shown[-1] == f"and {len(moment.nodes) - drawn} more nodes"
    assert "no full block is resident" in prefix_tree(replace(moment, nodes={}), THEME, 80, 5).plain


# Numbers -----------------------------------------------------------------------------------------------------------


def test_gauges_are_the_counts() -> None:
    for index in range(0, len(EXAMPLE), 7):
        moment = EXAMPLE.moment(index)
        record, counts = moment.record, moment.counts
        text = gauges(EXAMPLE, index, THEME, 100, 20).plain
        wasted = record.held_slots - record.live_slots
        assert f"{record.live_slots} used + {wasted} wasted = {record.held_slots} reserved of 96" in text
        again = counts["tokens_recomputed"]
        assert f"{again} token{'' if again == 1 else 's'} recomputed" in text
        for moved in (counts["swaps_out"], counts["swaps_in"]):
            assert f"{moved} block{'' if moved == 1 else 's'} (" in text
        assert f"{counts['evictions']} evicted, {counts['drops']} lost for good" in text
        held = [block.holders for block in moment.device_blocks if block.holders]
        saved = sum(map(len, held)) - len(held)
        assert f"{saved} block{'' if saved == 1 else 's'} saved: {len(held)} held" in text
        if counts["swaps_out"]:
            assert f"({4.096 * counts['swaps_out']:.3g} KB) out" in text


def test_hit_rate_and_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(32, 4)
    run = Witnessed(house)
    house.add([1, 2, 3, 4, 5, 6, 7, 8, 9], 1)
    house.run()
    house.add([1, 2, 3, 4, 5, 6, 7, 8, 10], 1)
    house.run()
    # Of 18 prompt tokens, 8 were found and 10 computed.
    assert "44 % of prompt tokens, last 2 steps" in gauges(History(run), 1, THEME, 100, 20).plain
    house.add([1, 2, 3, 4, 11], 1)
    house.run()
    monkeypatch.setattr("minipaged.viz.gauges.HIT_STEPS", 1)  # 4 of 5 in the last step
    assert "80 % of prompt tokens, last 1 step\n" in gauges(History(run), 2, THEME, 100, 20).plain
    # In the example a step takes 2 ms; the first draws one token for A, the second one for A and three for B.
    assert tokens_per_second(EXAMPLE, 1) == pytest.approx(5 / 0.004)


# History and paper -------------------------------------------------------------------------------------------------


class Counting:
    """A trace that counts how often it is asked."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.header = trace.header
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.trace)

    def moment(self, index: int) -> Moment:
        self.asked.append(index)
        return self.trace.moment(index)


def test_history_asks_for_each_moment_once() -> None:
    trace = Counting(example_trace())
    history = History(trace)
    records: list[StepRecord] = []
    for _ in range(3):
        records = [history.facts(index).record for index in range(len(history))]
    assert trace.asked == list(range(len(trace)))
    assert records == [trace.trace.moment(index).record for index in range(len(trace))]
    with pytest.raises(IndexError):
        history.moment(len(history))


def test_paper() -> None:
    picture = Picture([Text("茶茶茶"), Text("b")])
    assert [line.plain for line in picture.fitted(5, 3, pad=True)] == ["茶茶 ", "b    ", "     "]
    assert picture.beside(Picture([Text("x")]), 4, "|").plain == "茶茶|x\nb   |\n"
    assert [line.plain for line in flowed(map(Text, ["aa", "bb", "cccccccc"]), 6)] == ["aa  bb", "cccccc"]
    assert heading("a", ("far too long a text", "short"), THEME, 14).plain == "a ────── short"
    assert heading("a", "far too long", THEME, 6).plain == "a ────"

    def section(lines: int, least: int) -> Section:
        return Section(lambda height: Picture([Text(str(lines))] * min(lines, height)), least)

    def dealt(height: int) -> str:
        return "".join(line.plain for line in stacked([section(5, 2), section(3, 2), section(9, 4)], height))

    assert dealt(20) == "5" * 5 + "3" * 3 + "9" * 9
    assert dealt(10) == "5553339999"  # everyone's least, then a line each as long as there is one
    assert dealt(7) == "5555333" and dealt(5) == "55533"  # the third would be cut below its least, so it is left out
