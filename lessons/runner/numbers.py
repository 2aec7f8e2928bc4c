"""Numbers as people write them, and as they are shown to them; and how near a guess came. Knows no lesson."""

from __future__ import annotations

import math
import re


def parse_number(text: str) -> float:
    """A number as people write it: "1,000", "12 %", "3e6", "4k". A comma sets thousands apart; "0,5" is refused.

    Raises:
        ValueError: it is none, or not a finite one.
    """
    plain = text.replace("_", "").replace(" ", "").rstrip("%×x").lower()
    if re.search(r",(?!\d{3}(?!\d))", plain):  # it would otherwise be read as 5
        raise ValueError(f"{text!r} is no number (a comma sets thousands apart)")
    plain = plain.replace(",", "")
    factor = {"k": 1e3, "m": 1e6, "g": 1e9}.get(plain[-1:], 1.0)
    try:
        number = float(plain.rstrip("kmg")) * factor
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no number that could be measured")
    return number


def shown(value: float) -> str:
    """Whole numbers whole, with thousands apart; others to three digits."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def verdict(yours: float, measured: float) -> str:
    """How near the learner's prediction came."""
    if yours == measured:
        return "[green]exactly.[/]"
    if measured == 0 or yours == 0 or (yours > 0) != (measured > 0):
        return f"[yellow]off by {shown(abs(yours - measured))}.[/]"
    factor = max(yours / measured, measured / yours)
    if factor < 1.1:
        return f"[green]within {math.ceil(100 * (factor - 1))}%.[/]"
    side = "above" if abs(yours) > abs(measured) else "below"
    return f"[yellow]{factor:.3g} times {side} what was measured. The README says why.[/]"
