"""Lesson 5, played: regions fail where blocks do not, then the real engine shows how little blocks waste."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.text import Text

from lessons.lesson05_block_table import LESSON
from lessons.lesson05_block_table.contiguous_regions import ContiguousRegions
from lessons.lesson05_block_table.experiment import (
    BLOCK_SIZE,
    ENGINE_BLOCK_SIZE,
    NUM_SLOTS,
    Beat,
    EngineRun,
    Figures,
    sequence_lengths,
    serve,
    tell,
    waste,
)
from lessons.lesson05_block_table.paged_slots import PagedSlots
from lessons.lesson05_block_table.slot_map import block_row, region_map
from lessons.runner.stage import Stage, run
from minipaged.parts import Parts
from minipaged.trace_file import LiveTrace
from minipaged.viz.block_map import block_map
from minipaged.viz.history import History
from minipaged.viz.picture import Picture
from minipaged.viz.sequence_view import block_tables
from minipaged.viz.theme import Theme

BLOCK_SIZES = (1, 4, 16, 64, 256)
NUM_LENGTHS = 1000
LONGEST = 1024


def play(stage: Stage) -> Figures:
    """Both acts."""
    theme = stage.theme
    parts = stage.mine.parts()

    stage.act(1, "one region per request")
    stage.say(
        f"{NUM_SLOTS} token slots. Each request takes one region of neighbouring slots, exactly as long as it needs "
        "now. One character below stands for two slots."
    )
    regions = ContiguousRegions(NUM_SLOTS)
    told = tell(regions, lambda beat: _show(stage, beat, region_map(theme, NUM_SLOTS, _slots_of(regions))))
    refused = next(beat for beat in told if not beat.granted)
    stage.console.print()
    stage.say(
        f"A wanted one more slot, but B lies behind it: all of A moved, [bold]{regions.num_moved} slots were copied[/] "
        f"to add one. Then {refused.name} asked for {refused.num_tokens}: [bold]refused with {refused.free_slots} "
        f"slots free[/], since no hole has more than {regions.largest_hole}."
    )
    average = stage.predict(
        "empty slots per sequence, on average",
        (ENGINE_BLOCK_SIZE - 1) / 2,
        "slots",
        hint=f"Now memory is cut into blocks of {ENGINE_BLOCK_SIZE} slots, and a sequence takes a block when its last "
        "one is full. It may be of any length. How many slots of its blocks are empty, on average? And at most?",
    )
    most = stage.predict("empty slots in a sequence, at most", ENGINE_BLOCK_SIZE - 1, "slots")

    stage.act(2, "blocks, and a table per request")
    stage.say(
        f"The same memory as {NUM_SLOTS // BLOCK_SIZE} blocks of {BLOCK_SIZE} slots. Each block is drawn as a letter "
        "and a level, which says how full it is."
    )
    paged = PagedSlots(NUM_SLOTS, BLOCK_SIZE, parts.pool, parts.table)
    told_paged = tell(paged, lambda beat: _show(stage, beat, _row(theme, paged)))
    stage.console.print()
    example = paged.tables["E"]
    position = 13
    logical, offset = divmod(position, BLOCK_SIZE)
    stage.say(
        f"Nothing moved and nobody was refused. E lies in blocks {', '.join(map(str, example.blocks))}: its token at "
        f"position {position} is in logical block {logical} ({position} // {BLOCK_SIZE}), at offset {offset} "
        f"({position} % {BLOCK_SIZE}); the table says physical block {example.blocks[logical]}, so its slot is "
        f"{example.blocks[logical]} * {BLOCK_SIZE} + {offset} = {paged.slot('E', position)}."
    )
    lengths = sequence_lengths(NUM_LENGTHS, LONGEST)
    sweep = tuple(waste(block_size, lengths) for block_size in BLOCK_SIZES)
    stage.table(
        f"What a block size costs: {NUM_LENGTHS} sequences of 1 to {LONGEST} tokens",
        ["block size", "empty, mean", "empty, most", "(b - 1) / 2", "in use", "table entries"],
        [
            (
                row.block_size,
                f"{row.mean_empty:.1f}",
                row.most_empty,
                f"{(row.block_size - 1) / 2:.1f}",
                f"{row.utilisation:.1%}",
                f"{row.table_entries:,}",
            )
            for row in sweep
        ],
        highlight=ENGINE_BLOCK_SIZE,
    )
    engine, trace = serve(parts, stage.small, stage.device)
    ours, _ = serve(Parts(), stage.small, stage.device) if stage.mine.answers else (engine, trace)
    stage.say(
        f"And the real engine: {len(engine.answers)} prompts to tiny-gpt, up to {engine.peak_running} at a time, on "
        f"blocks of {ENGINE_BLOCK_SIZE}. This is its memory at its fullest, and each sequence's table:"
    )
    stage.picture(_engine_picture(theme, trace, min(stage.console.width, 100)), "blocks and tables")
    stage.say(_verdict(engine, ours, bool(stage.mine.answers)))
    stage.score(average, engine.mean_empty)
    stage.score(most, engine.most_empty)
    return Figures(
        regions_free_at_refusal=refused.free_slots,
        regions_largest_hole=regions.largest_hole,
        regions_moved=regions.num_moved,
        paged_refusals=sum(not beat.granted for beat in told_paged),
        waste=sweep,
        engine=engine,
        engine_is_right=engine.answers == ours.answers,
    )


def _show(stage: Stage, beat: Beat, line: Text) -> None:
    if beat.action == "admit":
        said = f"{beat.name} comes, {beat.num_tokens}" if beat.granted else f"{beat.name}, {beat.num_tokens}: refused"
    else:
        said = f"{beat.name} grows by 1" if beat.action == "append" else f"{beat.name} ends"
    style = "" if beat.granted else "bold red"
    free = f"{beat.free_slots:5} free"
    if stage.console.width < 16 + line.cell_len + len(free):  # a narrow terminal would break the map in two
        stage.console.print(Text.assemble((f"{said:16}", style), free))
        stage.console.print(line)
    else:
        stage.console.print(Text.assemble((f"{said:16}", style), line, free))


def _slots_of(regions: ContiguousRegions) -> dict[str, range]:
    return {name: range(base, base + length) for name, (base, length) in regions.regions.items()}


def _row(theme: Theme, paged: PagedSlots) -> Text:
    tables = {name: (table.blocks, paged.lengths[name]) for name, table in paged.tables.items()}
    return block_row(theme, NUM_SLOTS // BLOCK_SIZE, BLOCK_SIZE, tables)


def _engine_picture(theme: Theme, trace: LiveTrace, width: int) -> Picture:
    """The block map and the tables at the step in which most blocks are held."""
    history = History(trace)
    held = [sum(bool(block.holders) for block in history.moment(i).device_blocks) for i in range(len(history))]
    index = held.index(max(held))
    moment = history.moment(index)
    changes = history.facts(index).changes
    tables = block_tables(moment, changes, theme, width, len(moment.running) + 1)
    return block_map(moment, changes, theme, width, 10) + tables


def _verdict(engine: EngineRun, ours: EngineRun, is_mine: bool) -> str:
    said = f"{engine.utilisation:.1%} of the slots that sequences held were in use, over {engine.steps} steps."
    if not is_mine:
        return said
    if engine.answers == ours.answers:
        return f"{said} With your parts the engine gave the same answers as with ours, token for token."
    return f"{said} [red]With your parts the engine gave other answers than with ours.[/]"


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
