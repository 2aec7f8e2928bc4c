"""RequestLog: listens to an engine and keeps of each request when it came, when it was served, and how long it stood
still. The figures of a service are shares of many; this is for asking after single ones and after groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil

from minipaged.trace import StepRecord
from minipaged.traffic import TimedRequest


@dataclass(slots=True)
class Visit:
    """One request, from its arrival to its end. Times are in seconds.

    Args:
        arrival: when it came.
        num_prompt, num_output: its lengths in tokens.
        priority: lower is more urgent.
        began: when the first step that computed any of it began.
        first_token, ended: when it got its first and its last token.
        stood_still: the longest time in which it got nothing: to the first token, or between two.
    """

    arrival: float
    num_prompt: int
    num_output: int
    priority: int
    began: float = 0.0
    first_token: float = 0.0
    ended: float = 0.0
    stood_still: float = 0.0

    @property
    def normalised(self) -> float:
        """Seconds from arrival to the end for each token of the answer."""
        return (self.ended - self.arrival) / self.num_output


class RequestLog:
    """A listener. Requests of one sequence each, numbered in the order in which they come."""

    def __init__(self) -> None:
        self.visits: dict[int, Visit] = {}  # by sequence
        self._last: dict[int, float] = {}  # when each got its last token; before its first, when it came

    def expect(self, sequence: int, request: TimedRequest) -> None:
        """A request has come."""
        prompt, output = len(request.prompt_token_ids), request.num_output
        self.visits[sequence] = Visit(request.arrival_seconds, prompt, output, request.priority)
        self._last[sequence] = request.arrival_seconds

    def __call__(self, record: StepRecord) -> None:
        """Take a step in."""
        end = record.started_seconds + record.seconds
        for event in record.events:
            if event.kind == "admit" and not self.visits[event.sequence].began:
                self.visits[event.sequence].began = record.started_seconds
        for sequence, _ in record.drawn:
            visit = self.visits[sequence]
            visit.stood_still = max(visit.stood_still, end - self._last[sequence])
            visit.first_token = visit.first_token or end
            visit.ended = self._last[sequence] = end


def quantile(values: Iterable[float], share: float) -> float:
    """The least of the values that at least this share of them are not above; 0 when there is none."""
    ranked = sorted(values)
    return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


def of(visits: Iterable[Visit], chosen: Callable[[Visit], bool]) -> list[Visit]:
    """Some of them."""
    return [visit for visit in visits if chosen(visit)]
