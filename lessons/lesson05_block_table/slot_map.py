"""The story's memory on one line, as regions and as blocks: whose each part is, and how full. Draws what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items

from rich.style import Style
from rich.text import Text

from minipaged.viz.theme import LETTERS, Theme

SLOTS_IN_A_CHARACTER = 2


def region_map(theme: Theme, num_slots: int, slots: Mapping[str, Items[int]]) -> Text:
    """One character for two slots: the letter of whose they are, or a dot.

    Args:
        theme: what the terminal can show.
        num_slots: of the memory.
        slots: name of a request -> its slots.
    """
    owner = {slot // SLOTS_IN_A_CHARACTER: name for name, own in slots.items() for slot in own}
    line = Text(no_wrap=True, overflow="crop")
    for character in range(num_slots // SLOTS_IN_A_CHARACTER):
        name = owner.get(character)
        line.append(name or theme.glyphs.free, owner_style(theme, name) if name else theme.role("free"))
    return line


def block_row(theme: Theme, num_blocks: int, block_size: int, tables: Mapping[str, tuple[Items[int], int]]) -> Text:
    """Two characters for a block: the letter of whose it is, and how full; or a dot.

    Args:
        theme: what the terminal can show.
        num_blocks: of the memory.
        block_size: token slots in a block.
        tables: name of a request -> its blocks, and its tokens.
    """
    fill = {
        block: (name, min(block_size, num_tokens - logical * block_size))
        for name, (blocks, num_tokens) in tables.items()
        for logical, block in enumerate(blocks)
    }
    line = Text(no_wrap=True, overflow="crop")
    for block in range(num_blocks):
        if block in fill:
            name, num_filled = fill[block]
            line.append(name + theme.fill(num_filled, block_size), owner_style(theme, name))
        else:
            line.append(f"{theme.glyphs.free} ", theme.role("free"))
    return line


def owner_style(theme: Theme, name: str) -> Style:
    """As on the block map: A is the first sequence."""
    return theme.owner(LETTERS.index(name))
