"""StepMeter: a listener that adds up what an engine's steps computed and held. Reads records and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from minipaged.trace import StepRecord

Tick = Callable[[int], None]  # told how many requests are answered so far


class StepMeter:
    """A listener that sums up what the steps held and did."""

    def __init__(self, on_finish: Tick | None = None) -> None:
        self.steps = 0
        self.num_computed = 0
        self.num_recomputed = 0
        self.sequence_steps = 0
        self.held_slots = 0
        self.live_slots = 0
        self.peak_held_slots = 0
        self.peak_waiting = 0
        self.num_preemptions = 0
        self.num_finished = 0
        self._on_finish = on_finish

    @property
    def mean_batch(self) -> float:
        """Sequences in work in a step, on average."""
        return self.sequence_steps / self.steps

    def __call__(self, record: StepRecord) -> None:
        self.steps += 1
        self.num_computed += record.num_tokens
        self.num_recomputed += sum(chunk.num_recomputed for chunk in record.chunks)
        self.sequence_steps += len(record.chunks)
        self.held_slots += record.held_slots
        self.live_slots += record.live_slots
        self.peak_held_slots = max(self.peak_held_slots, record.held_slots)
        self.peak_waiting = max(self.peak_waiting, record.num_waiting)
        self.num_preemptions += sum(event.kind == "preempt" for event in record.events)
        num_finished = sum(event.kind == "finish" for event in record.events)
        self.num_finished += num_finished
        if num_finished and self._on_finish is not None:
            self._on_finish(self.num_finished)
