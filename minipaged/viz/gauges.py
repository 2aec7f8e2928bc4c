"""Gauges: slots used, reserved and wasted; what sharing saves; what swapping moves; what is computed twice; how fast.

Everything is counted by the engine and its memory; here it is only put into proportion.
"""

from __future__ import annotations

from rich.text import Text

from minipaged.trace import Moment
from minipaged.viz.history import History
from minipaged.viz.picture import Picture, heading
from minipaged.viz.step_view import shares
from minipaged.viz.theme import Theme, many

HIT_STEPS = 128  # the hit rate is that of so many last steps
SPEED_STEPS = 32


def gauges(history: History, index: int, theme: Theme, width: int, height: int) -> Picture:
    """One line each, the most important first."""
    moment = history.moment(index)
    record, counts, glyphs = moment.record, moment.counts, theme.glyphs
    wasted = record.held_slots - record.live_slots
    bar_cells = max(width - 9, 0)
    bar = Text.assemble(("slots    ", theme.role("quiet")))
    parts = [record.live_slots, wasted, record.total_slots - record.held_slots]
    looks = ((glyphs.bar, "decode"), (glyphs.bar_half, "warning"), (glyphs.bar_rest, "quiet"))
    for (glyph, role), cells in zip(looks, shares(parts, bar_cells), strict=True):
        bar.append(glyph * cells, theme.role(role))
    used = f"{record.live_slots} used + {wasted} wasted"
    slots = f"{used} = {record.held_slots} reserved of {record.total_slots}", f"{used} of {record.total_slots}"
    num_out, num_in = counts["swaps_out"], counts["swaps_in"]
    moved = f"{_size(num_out, moment)} out, {_size(num_in, moment)} in", f"{many(num_out, 'block')} out, {num_in} in"
    hit_rate, num_steps = _hit_rate(history, index)
    hits = (
        "no prompt yet"
        if hit_rate is None
        else f"{100 * hit_rate:.0f} % of prompt tokens, last {many(num_steps, 'step')}"
    )
    rows = [
        ("", slots),
        ("sharing", (_sharing(moment),)),
        ("hits", (hits,)),
        ("again", (f"{many(counts['tokens_recomputed'], 'token')} recomputed",)),
        ("swapped", moved),
        ("given up", (f"{counts['evictions']} evicted, {counts['drops']} lost for good",)),
        ("speed", (f"{tokens_per_second(history, index):.0f} tokens/s of engine time",)),
    ]
    lines = [heading("gauges", "", theme, width), bar]
    for label, wordings in rows:  # the first that fits
        value = next((wording for wording in wordings if len(wording) <= width - 9), wordings[-1])
        lines.append(Text.assemble((f"{label:9}", theme.role("quiet")), theme.cut(value, width - 9)))
    return Picture(lines).fitted(width, height)


def tokens_per_second(history: History, index: int) -> float:
    """Tokens drawn per second of the last steps, by the engine's clock: what passes between steps, while someone
    watches, does not count. 0 while no time has passed.
    """
    records = [history.facts(i).record for i in range(max(0, index + 1 - SPEED_STEPS), index + 1)]
    seconds = sum(record.seconds for record in records)
    return sum(len(record.drawn) for record in records) / seconds if seconds else 0.0


def _hit_rate(history: History, index: int) -> tuple[float | None, int]:
    """(of the tokens that were wanted in the cache beyond the one that is fed back: the part that was there, steps)."""
    first = max(0, index + 1 - HIT_STEPS)
    names = ("tokens_from_device", "tokens_from_host", "tokens_copied")
    found = sum(history.facts(index).counts[name] for name in names)
    if first:
        found -= sum(history.facts(first - 1).counts[name] for name in names)
    computed = sum(
        chunk.num_tokens
        for i in range(first, index + 1)
        for chunk in history.facts(i).record.chunks
        if chunk.kind != "decode"
    )
    return (found / (found + computed) if found + computed else None), index + 1 - first


def _sharing(moment: Moment) -> str:
    held = [len(block.holders) for block in moment.device_blocks if block.holders]
    return f"{many(sum(held) - len(held), 'block')} saved: {len(held)} held stand for {sum(held)}"


def _size(num_blocks: int, moment: Moment) -> str:
    """ "12 blocks (1.5 MB)"; without the size where it is not known."""
    num_bytes = float(num_blocks * moment.header.block_bytes)
    if not moment.header.block_bytes:
        return many(num_blocks, "block")
    for unit in ("B", "KB", "MB"):
        if num_bytes < 1000:
            return f"{many(num_blocks, 'block')} ({num_bytes:.3g} {unit})"
        num_bytes /= 1000
    return f"{many(num_blocks, 'block')} ({num_bytes:.3g} GB)"


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(lambda history, index, theme, width: gauges(history, index, theme, width, 20))
