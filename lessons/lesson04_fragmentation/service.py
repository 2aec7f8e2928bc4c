"""Service: serves recorded requests with the engine's own scheduler on any memory, and looks at the slots in each step.

All requests are there from the beginning, so that memory is what they wait for. A step is opened and closed in two
calls: while it is open the books can be looked at, as when the model would run.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Protocol

from lessons.lesson04_fragmentation.recorded_requests import RecordedRequest
from lessons.lesson04_fragmentation.slot_counts import SlotCounts, held_counts
from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.contiguous.contiguous_cache import ContiguousCache
from minipaged.plan import CopyBlock, StepPlan
from minipaged.request import Sequence
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Memory, Scheduler
from minipaged.scripted_runner import END_OF_TEXT, WORD, ScriptedRunner, words_until

NOBODY_WAITS_FOR_A_PLACE = 256  # sequences at a time: more than any pool here holds


class SlotMemory(Memory, Protocol):
    """Memory whose tables are in blocks of so many slots."""

    @property
    def block_size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Who waits for memory, and in slots: what it needs in one piece, what is free, what is free in one piece."""

    sequence: int
    needed: int
    free: int
    largest_hole: int


class Service:
    """A scheduler, a memory, and the record of what there was to do.

    Args:
        memory: empty.
        requests: in their order of arrival; each one's sequence has its place as id.
        max_tokens: what the users ask for at most, one for all or one each.
        context: positions of the model.
    """

    def __init__(
        self, memory: SlotMemory, requests: Items[RecordedRequest], max_tokens: int | Items[int], context: int = 2048
    ) -> None:
        self.memory = memory
        self.scheduler = Scheduler(memory, max_sequences=NOBODY_WAITS_FOR_A_PLACE, max_positions=context)
        self.final_slots = final_slots(requests, max_tokens)
        self.runner = ScriptedRunner(words_until(self.final_slots))
        vocab_size = 1 + max(END_OF_TEXT, WORD)
        model = ModelConfig(vocab_size, context, 1, 1, 1, 1, 1, 1, eos_token_ids=(END_OF_TEXT,))
        engine = Engine(self.scheduler, self.runner, model)
        for request, most in zip(requests, _each(max_tokens, len(requests)), strict=True):
            engine.add_request([WORD] * request.prompt, SamplingParams(max_tokens=most))
        self.plan: StepPlan | None = None  # of the open step
        self.num_steps = 0
        self.num_running = 0  # summed over steps
        self.num_preemptions = 0
        self.num_copied = 0  # slots or blocks, by `CopyBlock`

    def open_step(self) -> StepPlan:
        """Decide the next step. The books now say how memory stands while it is computed."""
        self.plan = self.scheduler.schedule()
        self.num_steps += 1
        self.num_running += self.scheduler.num_running
        self.num_preemptions += sum(event.kind == "preempt" for event in self.scheduler.take_events())
        self.num_copied += sum(isinstance(operation, CopyBlock) for operation in self.plan.memory_ops)
        return self.plan

    def close_step(self) -> None:
        """Draw and book: who has ended gives back what it held."""
        assert self.plan is not None, "no step is open"
        self.scheduler.commit(self.plan, self.runner.run(self.plan))
        self.plan = None

    def run(self) -> SlotCounts:
        """Serve until nobody waits any more, and on to the end.

        Returns:
            The sum over the steps in which somebody waited: there, an empty slot is a slot that somebody wanted.
        """
        counts = SlotCounts()
        while self.scheduler.has_work:
            self.open_step()
            if self.scheduler.num_waiting:
                counts += self.counts()
            self.close_step()
        return counts

    # What an open step looks like ------------------------------------------------------------------------------------

    def regions(self) -> list[tuple[Sequence, tuple[int, ...], int]]:
        """Of each running sequence its table, and how many tokens it has in the cache once the open step is done."""
        assert self.plan is not None, "no step is open"
        ends = {chunk.sequence: chunk.start + len(chunk.token_ids) for chunk in self.plan.chunks}
        return [
            (sequence, self.memory.table(sequence), ends.get(sequence.id, sequence.num_computed))
            for sequence in self.scheduler.running
        ]

    def counts(self) -> SlotCounts:
        """Where every slot is, in the open step."""
        size = self.memory.block_size
        held = held_counts((len(table) * size, end, self.final_slots[s.id]) for s, table, end in self.regions())
        says = self.memory.live_slots, self.memory.held_slots
        assert (held[0], sum(held)) == says, f"live and held are {held[0]}, {sum(held)}; the memory says {says}"
        free = self.memory.total_slots - sum(held)
        if not self.scheduler.num_waiting:
            return SlotCounts(*held, idle=free)
        refused = self.refusal()
        if refused is not None and refused.needed <= refused.free:
            return SlotCounts(*held, external=free)
        return SlotCounts(*held, short=free)

    def refusal(self) -> Refusal | None:
        """Who was just refused by a contiguous memory, and why; None when nobody was."""
        if self.scheduler.waiting_cause != "no blocks" or not isinstance(self.memory, ContiguousCache):
            return None
        first, space = self.scheduler.waiting[0], self.memory.space
        needed = self.memory.slots_needed(first, self.scheduler.max_batch_tokens)
        return Refusal(first.id, needed, space.num_free, space.largest_hole)


def final_slots(requests: Items[RecordedRequest], max_tokens: int | Items[int]) -> dict[int, int]:
    """Slots that each request will have filled when it ends, by its id: all its tokens but the last, never fed back."""
    each = zip(requests, _each(max_tokens, len(requests)), strict=True)
    return {i: request.prompt + min(request.answer, most) - 1 for i, (request, most) in enumerate(each)}


def _each(max_tokens: int | Items[int], count: int) -> Items[int]:
    return [max_tokens] * count if isinstance(max_tokens, int) else max_tokens
