"""History: a trace that remembers what has been looked at, for pictures that show more than one step.

A timeline of eighty steps, redrawn ten times a second, would have the trace rebuild eight hundred moments a second. Of
each step that was looked at this keeps the little that such pictures need. It decides nothing and draws nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from minipaged.trace import Moment, StepRecord, Trace, TraceHeader
from minipaged.viz.changes import BlockChange, block_changes

MAX_MOMENTS = 4  # whole moments are large
MAX_FACTS = 4096


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is remembered of a step.

    Args:
        record: its own.
        phases: what each sequence did in it: "prefill", "recompute", "decode", "preempt", "preempted" (it waits, and
            ran before) or "waits". One that was preempted and computed in the same step counts as preempt.
        changes: of the blocks.
        counts: the memory's, since the beginning.
    """

    record: StepRecord
    phases: Mapping[int, str]
    changes: tuple[BlockChange, ...]
    counts: Mapping[str, int]


class History:
    """A `Trace` over a trace that remembers of each step what the panels ask for again and again.

    Args:
        trace: steps may be added to it; those that are there must not change.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._moments: OrderedDict[int, Moment] = OrderedDict()
        self._facts: OrderedDict[int, StepFacts] = OrderedDict()

    @property
    def header(self) -> TraceHeader:
        """The trace's."""
        return self._trace.header

    def __len__(self) -> int:
        return len(self._trace)

    def moment(self, index: int) -> Moment:
        """As the trace's own.

        Raises:
            IndexError: there is no such step.
        """
        if index not in self._moments:
            self._moments[index] = self._trace.moment(index)
            if len(self._moments) > MAX_MOMENTS:
                self._moments.popitem(last=False)
        self._moments.move_to_end(index)
        return self._moments[index]

    def facts(self, index: int) -> StepFacts:
        """What is remembered of the `index`-th step.

        Raises:
            IndexError: there is no such step.
        """
        if index not in self._facts:
            before = self.moment(index - 1) if index else None
            now = self.moment(index)
            self._facts[index] = StepFacts(now.record, _phases(now), block_changes(before, now), now.counts)
            if len(self._facts) > MAX_FACTS:
                self._facts.popitem(last=False)
        self._facts.move_to_end(index)
        return self._facts[index]


def _phases(moment: Moment) -> dict[int, str]:
    phases = {waiting.sequence: "preempted" if waiting.num_preemptions else "waits" for waiting in moment.waiting}
    phases.update({chunk.sequence: chunk.kind for chunk in moment.record.chunks})
    phases.update({event.sequence: "preempt" for event in moment.record.events if event.kind == "preempt"})
    return phases


if __name__ == "__main__":
    from rich.text import Text

    from minipaged.viz.picture import Picture
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: Picture(
            Text(theme.cut(f"step {i}: {history.facts(i).phases}", width)) for i in range(index + 1)
        )
    )
