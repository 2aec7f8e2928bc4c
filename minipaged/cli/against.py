"""`minipaged watch --against`: the same arrivals through two memories, side by side on one clock, until they part.

The clock is the step: both engines make one at a time, and who arrives before a step arrives at both. They run the same
model and give the same answers; what can differ is who is let in, who has to give way, and, between two memories with
a cache, what is found in it. The first such difference is what this is for, so there it stops and says why.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from rich.console import Console

from minipaged.cli.options import settle_threads
from minipaged.cli.recording import replay_hint, say_why_no_picture
from minipaged.cli.watch import Feed
from minipaged.cli.workload import Arrival
from minipaged.llm import LLM
from minipaged.memory.contiguous.buddy_cache import BuddyCache
from minipaged.memory.contiguous.contiguous_cache import ContiguousCache, in_engine
from minipaged.memory.contiguous.reserving_cache import ReservingCache
from minipaged.memory.kv_manager import KVManager
from minipaged.parts import Parts
from minipaged.recorder import Recorder
from minipaged.scheduler import Scheduler
from minipaged.static_batches import StaticBatches
from minipaged.trace import StepRecord
from minipaged.trace_file import LiveTrace, TraceWriter
from minipaged.viz.picture import Picture
from minipaged.viz.player import Player
from minipaged.viz.side_by_side import Half, side_by_side
from minipaged.viz.slot_map import Region
from minipaged.viz.stage import perform, why_no_picture
from minipaged.viz.theme import Theme, name

OURS = "paged"
OTHERS: dict[str, Parts | None] = {  # name -> parts of an engine with a contiguous memory; None: blocks, as ours
    "reserve-max": Parts(memory=in_engine(ReservingCache)),
    "buddy": Parts(memory=in_engine(BuddyCache)),
    "static": Parts(memory=in_engine(ReservingCache), scheduler=StaticBatches),
    "no-sharing": None,
}


class Side:
    """One of the two engines, and how it stood after each step.

    Args:
        name: for a reader.
        llm: the engine.
        arrivals: in their order.

    Attributes:
        looks: one for each step that was made.
    """

    def __init__(self, name: str, llm: LLM, arrivals: list[Arrival]) -> None:
        self.name = name
        self.llm = llm
        self.feed = Feed(llm, arrivals)
        self.looks: list[Half] = []
        self._records: list[StepRecord] = []
        llm.engine.listeners.append(self._records.append)

    @property
    def scheduler(self) -> Scheduler:
        return self.llm.engine.scheduler

    @property
    def memory(self) -> Any:
        return self.scheduler.memory

    def step(self) -> None:
        """One step, also when there is nothing to compute: the clock is everybody's."""
        self.llm.step()
        memory = self.memory
        regions = (
            Region(sequence.id, memory.table(sequence), memory.block_size, sequence.num_computed)
            for sequence in self.scheduler.running
        )
        self.looks.append(
            Half(
                self.name,
                self._records[-1],
                tuple(regions),
                tuple(sequence.id for sequence in self.scheduler.waiting),
                memory.total_slots,
                memory.held_slots,
                memory.live_slots,
            )
        )

    def why_not(self, sequence: int) -> str:
        """Why a sequence that waits was not let in, as far as this side can say."""
        waiting = self.scheduler.waiting
        if all(other.id != sequence for other in waiting):  # its prompt, from which it is forked, is not computed yet
            return "has not come to it yet"
        if waiting[0].id != sequence:
            return f"lets it wait behind {name(waiting[0].id)}"
        cause, memory = self.scheduler.waiting_cause, self.memory
        if cause == "no blocks" and isinstance(memory, ContiguousCache):
            needed = memory.slots_needed(waiting[0], self.scheduler.max_batch_tokens)
            hole = memory.space.largest_hole
            return (
                f"refuses it with {memory.space.num_free} slots free: it needs {needed} in a row, the largest hole "
                f"has {hole}"
            )
        if cause == "no blocks":
            return f"refuses it with {memory.total_slots - memory.held_slots} slots in no table"
        return f"lets it wait: {cause}"


class Duel:
    """Two sides on one clock.

    Args:
        left: ours.
        right: the other.

    Attributes:
        verdict: where they parted and why; "" until then.
        num_steps: that both have made, and that were compared. Ctrl-C may come between the one's and the other's.
    """

    def __init__(self, left: Side, right: Side) -> None:
        self.left = left
        self.right = right
        self.verdict = ""
        self.num_steps = 0

    def step(self) -> bool:
        """Both make a step; False, and nothing done, when they have parted or nothing is left to do."""
        sides = (self.left, self.right)
        if self.verdict:
            return False
        idle = not any(side.llm.engine.has_work for side in sides)
        for side in sides:
            side.feed.bring(idle=idle)
        if all(side.feed.is_done for side in sides):
            return False
        for side in sides:
            side.step()
        self.verdict = self._compare()
        self.num_steps += 1
        return True

    def _compare(self) -> str:
        """The first difference of the step, in words."""
        left, right = self.left.looks[-1].record, self.right.looks[-1].record
        for kind, tell in (("admit", self._admitted), ("preempt", self._preempted)):
            ours, others = _who(left, kind), _who(right, kind)
            if ours != others:
                sequence = min(ours ^ others)
                winner, loser = (self.left, self.right) if sequence in ours else (self.right, self.left)
                return f"Step {left.step}: {tell(winner, loser, sequence)}."
        if isinstance(self.right.memory, KVManager):  # else it has no cache in which anything could be found
            starts = {chunk.sequence: chunk.start for chunk in right.chunks}
            for chunk in left.chunks:
                start = starts.get(chunk.sequence, chunk.start)
                if start != chunk.start:
                    found = f"finds the first {max(start, chunk.start)} tokens of {name(chunk.sequence)} in its cache"
                    finder, other = (self.left, self.right) if chunk.start > start else (self.right, self.left)
                    return f"Step {left.step}: {finder.name} {found}; {other.name} begins at {min(start, chunk.start)}."
        return ""

    def _admitted(self, winner: Side, loser: Side, sequence: int) -> str:
        return f"{winner.name} admits {name(sequence)}; {loser.name} {loser.why_not(sequence)}"

    def _preempted(self, winner: Side, loser: Side, sequence: int) -> str:
        record = winner.looks[-1].record
        cause = next(e.cause for e in record.events if e.kind == "preempt" and e.sequence == sequence)
        return f"{winner.name} preempts {name(sequence)} ({cause}); {loser.name} keeps it"


def _who(record: StepRecord, kind: str) -> set[int]:
    return {event.sequence for event in record.events if event.kind == kind}


def duel(other: str, model: str, options: dict[str, Any], arrivals: list[Arrival]) -> Duel:
    """Two engines with the same slots, the same budgets and the same arrivals.

    Args:
        other: one of `OTHERS`.
        model: of both.
        options: of ours; the other gets the same token slots.
        arrivals: in their order.

    Raises:
        ValueError: one of them refuses the options or a request.
    """
    ours = LLM(model, **options)
    parts = OTHERS[other]
    if parts is None:
        return Duel(
            Side(OURS, ours, arrivals), Side(other, LLM(model, **options | {"share_prefixes": False}), arrivals)
        )
    without = {"kv_cache_bytes", "host_blocks", "host_cache_bytes", "share_prefixes"}
    contiguous = {key: value for key, value in options.items() if key not in without}
    contiguous |= {"block_size": 1, "num_blocks": ours.kv_cache.num_blocks * ours.kv_cache.block_size, "watermark": 0}
    return Duel(Side(OURS, ours, arrivals), Side(other, LLM(model, parts=parts, **contiguous), arrivals))


def show(
    other: str, model: str, options: dict[str, Any], arrivals: list[Arrival], speed: float, record: str | None
) -> int:
    """The whole of `minipaged watch --against`: in a terminal with `watch`'s keys, else as text.

    Returns:
        The exit status.
    """
    fight = duel(other, model, options, arrivals)
    settle_threads(fight.left.llm)
    console = Console(highlight=False)
    with ExitStack() as stack:
        trace = LiveTrace()
        sinks = [stack.enter_context(TraceWriter(record))] if record else []
        left = fight.left
        stack.enter_context(
            Recorder(left.llm.engine, trace, *sinks, description=left.llm.description, title=left.feed.title)
        )

        def board(index: int, width: int, height: int, theme: Theme) -> Picture:
            verdict = fight.verdict if index == fight.num_steps - 1 else ""
            return side_by_side(fight.left.looks[index], fight.right.looks[index], verdict, theme, width, height)

        status = 0
        try:
            if why := why_no_picture(console):
                say_why_no_picture(why)
                while fight.step():
                    pass
            else:
                fight.step()  # there is one to be shown
                perform(Player(trace, live=True, speed=speed), console, step=fight.step, board=board)
        except KeyboardInterrupt:
            status = 130
        if fight.num_steps:
            width = min(console.width, 120)
            console.print(board(fight.num_steps - 1, width, 40, Theme.of(console)))
        if not fight.verdict:
            print(f"In {fight.num_steps} steps {OURS} and {other} did the same.")
    if record:
        print(replay_hint(record))
    return status or int(any(side.feed.failed for side in (fight.left, fight.right)))
