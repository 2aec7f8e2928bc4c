"""StopStrings: watches growing text for the strings that end an answer, and holds back what may become one of them.

Knows neither tokens nor requests; it is fed whole characters (`minipaged/model/tokenizer.py` sees to that).
"""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Text goes in piece by piece; what comes out holds nothing of a stop string, nor of the beginning of one.

    The match that is complete first ends the answer; of two that end at the same character, the longer. So the result
    does not depend on how the text was cut into pieces.

    Args:
        stops: the strings to watch for, none of them empty; without any, text passes straight through.

    Attributes:
        match: the stop string that ended the text, or None so far.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise ValueError(f"StopStrings: {list(stops)!r} holds an empty string; it would end every answer at once")
        self.stops = tuple(stops)
        self.match: str | None = None
        self._held = ""  # the end of the text so far that may still become a stop string; shorter than the longest one

    @property
    def found(self) -> bool:
        """True once a stop string has ended the text."""
        return self.match is not None

    def push(self, piece: str) -> str:
        """Takes the next piece; returns the text that may safely leave. After a match that is nothing."""
        if self.found:
            return ""
        text = self._held + piece
        matches = [(start + len(stop), start, stop) for stop in self.stops if (start := text.find(stop)) >= 0]
        if matches:
            _, start, self.match = min(matches)
            self._held = ""
            return text[:start]
        safe = len(text) - self._length_to_hold(text)
        self._held = text[safe:]
        return text[:safe]

    def flush(self) -> str:
        """The answer is over: what was held back only began like a stop string, and leaves now."""
        rest, self._held = self._held, ""
        return rest

    def _length_to_hold(self, text: str) -> int:
        """Characters at the text's end that are the beginning of a stop string; the longest such ending."""
        longest = max((len(stop) for stop in self.stops), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            ending = text[-length:]
            if any(stop.startswith(ending) for stop in self.stops):
                return length
        return 0
