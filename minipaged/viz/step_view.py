"""What a step computed: prefill, recompute and decode tokens against the budget, and the chunks that they came in."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from minipaged.trace import StepRecord, TraceHeader
from minipaged.viz.picture import Picture, flowed, heading
from minipaged.viz.theme import Theme, many, name


def composition(
    record: StepRecord, header: TraceHeader, theme: Theme, width: int, height: int, *, follow: int | None = None
) -> Picture:
    """A bar as long as the budget, its parts in numbers, and each chunk with its positions."""
    budget, glyphs = header.max_batch_tokens, theme.glyphs
    recompute = sum(chunk.num_recomputed for chunk in record.chunks)
    decode = sum(chunk.num_tokens for chunk in record.chunks if chunk.kind == "decode")
    prefill = record.num_tokens - recompute - decode
    parts = [
        ("prefill", glyphs.prefill, prefill), ("recompute", glyphs.recompute, recompute),
        ("decode", glyphs.decode, decode), ("quiet", glyphs.bar_rest, max(budget - record.num_tokens, 0)),
    ]  # fmt: skip
    bar = Text()
    for (role, glyph, _), cells in zip(parts, shares([count for *_, count in parts], width), strict=True):
        bar.append(glyph * cells, theme.role(role))
    numbers = [
        Text.assemble((glyph, theme.role(role)), f" {'unused' if role == 'quiet' else role} {count}")
        for role, glyph, count in parts
    ]
    chunks = []
    for chunk in record.chunks:
        glyph = {"prefill": glyphs.prefill, "recompute": glyphs.recompute}.get(chunk.kind, glyphs.decode)
        style = theme.owner(chunk.sequence)
        if follow is not None:
            style += Style(bold=True) if chunk.sequence == follow else Style(dim=True)
        item = Text.assemble((name(chunk.sequence), style), " ", (glyph, theme.role(chunk.kind)), f" {chunk.start}")
        chunks.append(item.append(f":{chunk.start + chunk.num_tokens}" if chunk.num_tokens > 1 else ""))
    facts = f"{record.num_tokens} of {many(budget, 'token')} in {1000 * record.seconds:.1f} ms"
    lines = [heading("this step computed", facts, theme, width), bar, *flowed(numbers, width), *flowed(chunks, width)]
    if len(lines) > height > 0:
        lines = lines[:height]
        if height > 4:
            lines[-1] = Text(f"and more: {many(len(chunks), 'chunk')} in all", theme.role("quiet"))
    return Picture(lines).fitted(width, height)


def shares(counts: list[int], cells: int) -> list[int]:
    """Cells in proportion to counts; what is not nothing gets at least one, as long as there are cells."""
    total = sum(counts)
    if not total:
        return [0] * len(counts)
    given = [max(count * cells // total, 1) if count else 0 for count in counts]
    while sum(given) != cells:  # a few cells too many or too few: the largest part notices it least
        given[given.index(max(given))] += 1 if sum(given) < cells else -1
    return given


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: composition(history.facts(index).record, history.header, theme, width, 10)
    )
