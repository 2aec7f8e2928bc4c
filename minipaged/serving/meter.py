"""ServingMeter: listens to an engine's records and adds up what its users and its memory saw.

It is told what each request will have been in the end, which neither scheduler nor memory knows: without that, nobody
can say which of the empty slots are reserved and which are lost. It keeps the requests that are there and sums of those
that are gone, so it does not grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.serving.figures import Latencies, MemoryShares, ServingFigures, Spread
from minipaged.serving.histogram import Histogram
from minipaged.trace import StepRecord


@dataclass(slots=True)
class _Guest:
    """A request that is there."""

    arrival: float
    num_prompt: int
    final_slots: int  # slots that it will have filled when it ends
    group: _Group
    last: float  # seconds at its last token; before its first, its arrival
    num_output: int = 0
    seen: bool = False  # some of it was computed
    num_reached: int = 0  # tokens of the prompt that were found or computed by now


class _Group:
    """Sums over some requests."""

    def __init__(self) -> None:
        self.num_requests = 0
        self.first_token, self.between_tokens = Histogram(), Histogram()
        self.normalised, self.waiting = Histogram(), Histogram()

    def latencies(self) -> Latencies:
        spreads = (self.first_token, self.between_tokens, self.normalised, self.waiting)
        return Latencies(self.num_requests, *map(Spread.of, spreads))


class ServingMeter:
    """A listener that turns records into figures.

    Args:
        block_size: token slots in a block of the tables.
        slots_wanted: of the first that waits, how many slots in one piece it was refused; None where memory has no
            need of pieces, so that nothing that is free is lost.
        long_from: tokens of prompt and answer above which a request is a long one.
    """

    def __init__(self, block_size: int, slots_wanted: Callable[[], int] | None = None, long_from: int = 1024) -> None:
        self.block_size = block_size
        self.slots_wanted = slots_wanted
        self.long_from = long_from
        self._guests: dict[int, _Guest] = {}  # by sequence
        self._all, self._short, self._long = _Group(), _Group(), _Group()
        self._first_arrival: float | None = None
        self._now = 0.0
        self._steps = self._finished = self._refused = self._prompt = self._output = 0
        self._cached = self._recomputed = self._preemptions = self._swapped = self._copied = 0
        self._busy = self._running = 0.0
        self._live = self._reserved = self._internal = self._external = self._free = 0.0

    def expect(self, sequence: int, arrival: float, num_prompt: int, num_output: int) -> None:
        """A request of one sequence has come.

        Args:
            sequence: the sequence's id.
            arrival: when, in seconds of the engine's clock.
            num_prompt: tokens of the prompt.
            num_output: tokens that its answer will have.
        """
        group = self._long if num_prompt + num_output > self.long_from else self._short
        self._guests[sequence] = _Guest(arrival, num_prompt, num_prompt + num_output - 1, group, arrival)
        group.num_requests += 1
        self._all.num_requests += 1
        self._prompt += num_prompt
        if self._first_arrival is None:
            self._first_arrival = arrival

    def refuse(self) -> None:
        """A request has come that could never fit."""
        self._refused += 1

    def __call__(self, record: StepRecord) -> None:
        """Take a step in."""
        guests, size = self._guests, self.block_size
        began = record.started_seconds
        end = began + record.seconds
        reserved = 0
        for sequence, _, start, num_tokens, num_recomputed, kind, table in record.chunks:
            guest = guests[sequence]
            filled = start + num_tokens
            slots = len(table) * size
            reserved += (slots if slots < guest.final_slots else guest.final_slots) - filled
            if kind != "decode":
                self._recomputed += num_recomputed
                # What lies between where it has been and where this chunk starts was found.
                self._cached += max(0, min(start, guest.num_prompt) - guest.num_reached)
                guest.num_reached = max(guest.num_reached, min(filled, guest.num_prompt))
                if not guest.seen:
                    guest.seen = True
                    self._all.waiting.add(began - guest.arrival)
                    guest.group.waiting.add(began - guest.arrival)
        self._add_tokens(record, end)
        for event in record.events:
            if event.kind == "finish":
                self._part_with(guests.pop(event.sequence), end)
            elif event.kind == "preempt":
                self._preemptions += 1
        for operation in record.operations:
            self._swapped += isinstance(operation, (SwapIn, SwapOut))
            self._copied += isinstance(operation, CopyBlock)
        self._steps += 1
        self._now = end
        self._add_slots(record, reserved)

    def _add_tokens(self, record: StepRecord, end: float) -> None:
        guests = self._guests
        last_end, short = self._now, self._short
        num_short = num_long = 0  # of those that got a token in the last step too, and so waited alike
        for sequence, _ in record.drawn:
            guest = guests[sequence]
            guest.num_output += 1
            if guest.num_output == 1:
                self._all.first_token.add(end - guest.arrival)
                guest.group.first_token.add(end - guest.arrival)
            elif guest.last == last_end:
                if guest.group is short:
                    num_short += 1
                else:
                    num_long += 1
            else:
                self._all.between_tokens.add(end - guest.last)
                guest.group.between_tokens.add(end - guest.last)
            guest.last = end
        for group, times in ((self._short, num_short), (self._long, num_long)):
            if times:
                group.between_tokens.add(end - last_end, times)
                self._all.between_tokens.add(end - last_end, times)
        self._output += len(record.drawn)

    def _add_slots(self, record: StepRecord, reserved: int) -> None:
        seconds, total = record.seconds, record.total_slots
        free = total - record.held_slots
        external = 0
        if record.waiting_cause == "no blocks" and self.slots_wanted is not None and self.slots_wanted() <= free:
            external, free = free, 0
        self._busy += seconds
        self._running += seconds * len(record.chunks)
        share = seconds / total
        self._live += share * record.live_slots
        self._reserved += share * reserved
        self._internal += share * (record.held_slots - record.live_slots - reserved)
        self._external += share * external
        self._free += share * free

    def _part_with(self, guest: _Guest, end: float) -> None:
        self._finished += 1
        normalised = (end - guest.arrival) / max(guest.num_output, 1)
        self._all.normalised.add(normalised)
        guest.group.normalised.add(normalised)

    def figures(self, policy: str) -> ServingFigures:
        """All of it so far."""
        busy = self._busy or 1.0
        shares = (self._live, self._reserved, self._internal, self._external, self._free)
        return ServingFigures(
            policy=policy,
            num_requests=self._all.num_requests,
            num_refused=self._refused,
            num_finished=self._finished,
            prompt_tokens=self._prompt,
            output_tokens=self._output,
            seconds=self._now - (self._first_arrival or 0.0),
            busy_seconds=self._busy,
            num_steps=self._steps,
            all=self._all.latencies(),
            short=self._short.latencies(),
            long=self._long.latencies(),
            long_from=self.long_from,
            batch_size=self._running / busy,
            memory=MemoryShares(*(share / busy for share in shares)),
            cached_tokens=self._cached,
            recomputed_tokens=self._recomputed,
            preemptions=self._preemptions,
            swapped_blocks=self._swapped,
            copied_blocks=self._copied,
        )
