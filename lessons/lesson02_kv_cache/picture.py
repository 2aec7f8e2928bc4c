"""The lesson's picture: a line for each pass, a cell for each token that it sees: computed, computed again, or kept."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme


def passes_picture(rows: Sequence[int], prompt_tokens: int, theme: Theme, title: str) -> Picture:
    """What each pass computed of the tokens in sight.

    Args:
        rows: tokens computed by each pass.
        prompt_tokens: in sight of the first pass; each later one sees one more.
        theme: how it looks.
        title: above it.
    """
    glyphs = theme.glyphs
    widest = prompt_tokens + len(rows)
    lines = [Text(title, theme.role("title"))]
    for number, computed in enumerate(rows):
        seen = prompt_tokens + number
        first = prompt_tokens if number == 0 else 1  # tokens that no pass has computed before
        line = Text(f"{number + 1:3} ")
        line.append(glyphs.free * (seen - computed), theme.role("free"))
        line.append(glyphs.recompute * (computed - first), theme.role("recompute"))
        line.append(glyphs.prefill * first, theme.role("prefill" if number == 0 else "decode"))
        line.append(" " * (widest - seen) + f"{computed:3}")
        lines.append(line)
    lines.append(Text(f"{'sum':4}{'':{widest}}{sum(rows):3}", theme.role("quiet")))
    return Picture(lines)


def both_pictures(naive: Sequence[int], cached: Sequence[int], prompt_tokens: int, theme: Theme) -> Picture:
    """The two ways beside each other."""
    left = passes_picture(naive, prompt_tokens, theme, "nothing kept")
    right = passes_picture(cached, prompt_tokens, theme, "K and V kept")
    return left.beside(right, max(len(line) for line in left.lines) + 6) + key(theme)


def key(theme: Theme) -> Picture:
    """What the cells mean."""
    glyphs = theme.glyphs
    cells = ((glyphs.prefill, "computed"), (glyphs.recompute, "computed again"), (glyphs.free, "kept, not computed"))
    return Picture([Text("   ".join(f"{cell} {meaning}" for cell, meaning in cells), theme.role("quiet"))])
