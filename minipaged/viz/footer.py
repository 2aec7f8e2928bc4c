"""The footer, which says where one stands and what the keys do, and the page of help. They take a `Player`."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text

from minipaged.viz.picture import Picture, heading
from minipaged.viz.player import HELP, Player
from minipaged.viz.theme import Theme

# In the order in which they are shown; where it is narrow, those with the higher number go first.
_KEYS = (
    ("space", "pause", 2), ("←→", "step", 3), ("]", "next event", 4), ("/", "follow", 5), ("enter", "life", 7),
    ("tab", "panel", 3), ("+-", "speed", 6), ("t", "answers", 8), ("?", "help", 1), ("q", "quit", 0),
)  # fmt: skip

SPEED_NOTE = ("tokens/s counts the engine's own time alone, not", "the pauses in which you watch and it waits.")


def footer(player: Player, width: int, theme: Theme) -> Text:
    """One line."""
    left = _where(player, width, theme)
    room = width - left.cell_len - 2
    for most in range(9, -1, -1):
        keys = Text("  ").join(
            Text.assemble((_plain(key, theme), theme.role("title")), (f" {what}", theme.role("quiet")))
            for key, what, rank in _KEYS
            if rank <= most and (key != "t" or player.has_texts)
        )
        if keys.cell_len <= room:
            return left.append(" " * (width - left.cell_len - keys.cell_len)).append_text(keys)
    return left


def _where(player: Player, width: int, theme: Theme) -> Text:
    if player.typed is not None:
        return Text.assemble(("/", theme.role("title")), theme.text(player.typed), ("_", theme.role("title")))
    if player.message:
        return Text(theme.cut(player.message, width), theme.role("warning"))
    speed = "full speed" if player.speed == math.inf else f"{player.speed:g}/s"
    parts = [player.state, speed, player.followed]
    return Text(theme.cut(f" {theme.glyphs.dot} ".join(part for part in parts if part), width))


def help_page(player: Player, width: int, height: int, theme: Theme) -> Picture:
    """What every key does."""
    column = max(cell_len(keys) for keys, _ in HELP) + 2
    lines = [heading("keys", "any key goes back", theme, width), Text()]
    for keys, what in HELP:
        if keys == "t" and not player.has_texts:
            continue
        shown = _plain(keys, theme)
        lines.append(
            Text.assemble((f"  {shown}".ljust(column + 2), theme.role("title")), theme.cut(what, width - column - 2))
        )
    lines += [Text(), *(Text(theme.cut(line, width), theme.role("quiet")) for line in SPEED_NOTE)]
    return Picture(lines).fitted(width, height)


def _plain(keys: str, theme: Theme) -> str:
    """Arrows in words where there is only ASCII."""
    if theme.unicode:
        return keys
    for arrow, word in {"←→": "n p", "→ n  ← p": "n  p", "↑  ↓": "up down", "…": "to"}.items():
        keys = keys.replace(arrow, word)
    return keys


if __name__ == "__main__":  # python -m minipaged.viz.footer
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: (
            help_page(Player(history), width, 20, theme) + Picture([footer(Player(history, index=index), width, theme)])
        )
    )
