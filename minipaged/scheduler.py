"""Scheduler: decides what the next step computes, and books what came back.

It knows requests and counts tokens. It knows no tensor, no clock and no text, and of memory only what the `Memory`
protocol says, which presumes no blocks but the table that goes into the plan: a learner's allocator fits.

Two rules carry everything else:

- Prefill and decode are not kinds. A running sequence has tokens that are not computed yet (one, when it decodes; many,
  when its prompt has just come or its blocks were taken away), and each step gives it a chunk of them.
- Rank never changes: the order policy's value, then age. Running and waiting are both kept by rank, the oldest first;
  the youngest gives way, so the oldest that runs always advances and nothing deadlocks.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from typing import Any, Protocol

from minipaged.order import Order, first_come_first_served
from minipaged.plan import Chunk, MemoryOp, StepPlan, StepResult
from minipaged.request import FinishReason, Request, Sequence, Status
from minipaged.trace import Event


class Admission(Protocol):
    """What memory answers to an admission."""

    @property
    def num_cached(self) -> int:
        """Tokens whose K and V are there already."""
        ...

    @property
    def num_new(self) -> int:
        """Tokens that the sequence computes in this step, behind the cached ones; there is room for them."""
        ...


class Memory(Protocol):
    """What the scheduler asks of memory. A refusal (None, False) changes nothing.

    A step begins with the first `admit` or `grow` and ends with `end_step` or `abort_step`. In between a sequence of
    the step is not released: one that is to end does so behind the step.
    """

    @property
    def total_slots(self) -> int:
        """Token slots in the device pool."""
        ...

    @property
    def max_sequence_slots(self) -> int:
        """Token slots that one sequence can hold at most, with the pool to itself."""
        ...

    @property
    def held_slots(self) -> int:
        """Token slots that sequences hold, filled or not."""
        ...

    @property
    def live_slots(self) -> int:
        """Held slots that hold a token once the open step is done."""
        ...

    def admit(self, sequence: Sequence, want: int, reserve: int = 0) -> Admission | None:
        """Give a waiting sequence its slots.

        Args:
            sequence: holds nothing yet.
            want: tokens to compute in this step at most, at least 1.
            reserve: token slots that must stay available behind the admission.

        Returns:
            What is there of its tokens already, and how many it computes; None when it does not fit.
        """
        ...

    def continue_walk(self, sequence: Sequence) -> int:
        """How many more of a running sequence's tokens need not be computed, since others have; 0 without sharing."""
        ...

    def grow(self, sequence: Sequence, n: int) -> bool:
        """Make room for `n` more tokens behind the computed ones; False when there is none."""
        ...

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Give `child` what `parent` holds: the prompt is computed, and the request's answers part."""
        ...

    def release(self, sequence: Sequence) -> None:
        """Take back all that the sequence holds."""
        ...

    def end_request(self, request: Request) -> None:
        """All sequences of the request have ended."""
        ...

    def table(self, sequence: Sequence) -> tuple[int, ...]:
        """A copy of the sequence's block table, which goes into the plan; empty when it holds nothing."""
        ...

    def take_operations(self) -> list[MemoryOp]:
        """The operations decided since the last call, in order; they are executed with the plan."""
        ...

    def end_step(self) -> None:
        """The step went well: what it computed is there."""
        ...

    def abort_step(self, unexecuted: list[MemoryOp]) -> None:
        """The step failed: what it should have computed is not there.

        Args:
            unexecuted: those of its operations that were not carried out; they are still to be done.
        """
        ...


class Scheduler:
    """Fills each step with chunks, oldest sequence first.

    Args:
        memory: who gives and takes the token slots.
        max_batch_tokens: tokens in a step at most; at least `max_sequences`.
        max_sequences: sequences that run at the same time at most.
        max_chunk_tokens: tokens of one sequence in a step at most; None for no limit but the batch's.
        max_positions: the model's context in tokens; None for no limit.
        watermark_slots: token slots that an admission leaves free, except when nothing is running.
        order: the policy; its value is taken once, when a sequence arrives, and ties go by age.

    Raises:
        ValueError: a budget that could starve a running sequence.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        max_batch_tokens: int = 2048,
        max_sequences: int = 64,
        max_chunk_tokens: int | None = None,
        max_positions: int | None = None,
        watermark_slots: int = 0,
        order: Order = first_come_first_served,
    ) -> None:
        if not 1 <= max_sequences <= max_batch_tokens:
            raise ValueError(
                f"Scheduler: max_batch_tokens {max_batch_tokens}, max_sequences {max_sequences}; "
                "both must be at least 1, and the budget must hold one token of every running sequence"
            )
        if max_chunk_tokens is not None and max_chunk_tokens < 1:
            raise ValueError(f"Scheduler: max_chunk_tokens is {max_chunk_tokens}; it must be at least 1")
        self.memory = memory
        self.max_batch_tokens = max_batch_tokens
        self.max_sequences = max_sequences
        self.max_chunk_tokens = max_chunk_tokens or max_batch_tokens
        self.max_positions = max_positions
        self.watermark_slots = watermark_slots
        self.order = order
        self._running: list[Sequence] = []  # by rank
        self._waiting: list[Sequence] = []  # by rank
        self._events: list[Event] = []  # since the last `take_events`
        self._planned: dict[int, Sequence] | None = None  # the open step's sequences; None between steps
        self._end_after_step: list[tuple[Sequence, FinishReason]] = []  # asked for while a step was open
        self._waiting_cause: str | None = None  # why the last plan admitted nobody more; None when nobody was left
        self.num_steps = 0  # plans made so far

    # What a person looks at ------------------------------------------------------------------------------------------

    @property
    def running(self) -> tuple[Sequence, ...]:
        """The running sequences, oldest first."""
        return tuple(self._running)

    @property
    def waiting(self) -> tuple[Sequence, ...]:
        """The waiting sequences in the order in which they will be admitted."""
        return tuple(self._waiting)

    @property
    def num_running(self) -> int:
        """Sequences that run."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Sequences that wait."""
        return len(self._waiting)

    @property
    def waiting_cause(self) -> str | None:
        """Why the first that waits does so, as the last step found it; None when nobody waits."""
        return (self._waiting_cause or "just came") if self._waiting else None

    @property
    def has_work(self) -> bool:
        """Whether a sequence runs or waits."""
        return bool(self._running or self._waiting)

    @property
    def planned(self) -> dict[int, Sequence]:
        """The sequences of the open step by id; empty between steps."""
        return self._planned or {}

    def take_events(self) -> list[Event]:
        """What happened since the last call, each with its cause, in order."""
        events, self._events = self._events, []
        return events

    # Requests come and go --------------------------------------------------------------------------------------------

    def add(self, request: Request) -> None:
        """Queue a request: its first sequence, from which the others are forked when the prompt is computed.

        Raises:
            ValueError: as `require_fit`, or the order has a value that cannot be ranked. Nothing is queued then.
        """
        self.require_fit(request)
        for sequence in request.sequences:
            value = self.order(sequence)
            self._require_rankable(value)
            sequence.rank = (value, *sequence.age)
        self._wait(request.sequences[0])

    def require_fit(self, request: Request) -> None:
        """Refuse what could never run, with the pool to itself.

        Raises:
            ValueError: the message has both numbers.
        """
        prompt, answer = len(request.prompt_token_ids), request.params.max_tokens
        need = prompt + answer - 1  # the last token drawn is never fed back, so it needs no slot and no position
        for limit, what in (
            (self.memory.max_sequence_slots, "token slots the pool can give it"),
            (self.max_positions, "positions of the model's context"),
        ):
            if limit is not None and need > limit:
                raise ValueError(
                    f"request {request.id} needs {need} token slots (prompt {prompt} + max_tokens {answer} - 1), "
                    f"above the {limit} {what}"
                )

    def _require_rankable(self, value: Any) -> None:
        """Now, and not in the middle of a step: a NaN, or a text among numbers, has no place in a line."""
        standing = (self._running or self._waiting)[:1]
        try:
            others = [value, *(sequence.rank[0] for sequence in standing)]
            good = all(bool(value < other) + bool(value == other) + bool(other < value) == 1 for other in others)
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ValueError(
                f"Scheduler: the order's value is {str(value)[:80]!r}; it must be something that can be ranked"
            )

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """End a sequence from outside (a cancellation, a stop string); during a step, at the end of that step."""
        if self._planned is not None:
            self._end_after_step.append((sequence, reason))
        else:
            self._end(sequence, reason)

    def _end(self, sequence: Sequence, reason: FinishReason) -> None:
        """End a sequence now; one that has ended already stays as it is."""
        if sequence.status is Status.FINISHED:
            return
        was_queued = True
        if sequence.status is Status.RUNNING:
            self._leave(sequence)
        else:
            was_queued = self._stop_waiting(sequence)
        sequence.status = Status.FINISHED
        sequence.finish_reason = reason
        self._events.append(Event("finish", sequence.id, reason))
        request = sequence.request
        request.num_ended += 1
        if request.finished:
            self.memory.end_request(request)
        elif was_queued and not request.forked:  # it stood for the others, too: the next one takes its place
            behind = islice(request.sequences, sequence.index + 1, None)
            self._wait(next(other for other in behind if other.status is not Status.FINISHED))

    # One step --------------------------------------------------------------------------------------------------------

    def schedule(self) -> StepPlan:
        """Decide the next step. It stays open until `commit` or `fail`.

        Returns:
            A plan; its chunks are empty only when there is no work.
        """
        chunks = self._open_step()
        budget, enough = self._go_on(chunks, self.max_batch_tokens)
        self._admit(chunks, budget, enough)
        return self._finished_plan(chunks)

    # The parts of `schedule`, of which another scheduler may be made ------------------------------------------------

    def _open_step(self) -> list[Chunk]:
        """From here on, whoever is to be ended waits for the end of the step. The plan's chunks, none yet."""
        assert self._planned is None, "the last step was neither committed nor failed"
        self._planned = {}
        return []

    def _go_on(self, chunks: list[Chunk], budget: int, *, prompts_only: bool = False) -> tuple[int, bool]:
        """Running sequences, oldest first; each leaves one token of the budget for everyone behind it.

        Args:
            chunks: of the open step; theirs are added.
            budget: tokens that are left of it.
            prompts_only: those that decode are passed over.

        Returns:
            What is left of the budget, and whether memory was enough: False when somebody was preempted.
        """
        planned = self._planned
        assert planned is not None, "no step is open"
        enough = True
        position = 0
        while position < len(self._running):
            sequence = self._running[position]
            n = len(sequence.tokens) - sequence.num_computed
            if n > 1:  # a decode has nothing to find, since its token is new, and nothing to be cut down to
                sequence.num_computed += self.memory.continue_walk(sequence)
                behind = len(self._running) - position - 1
                n = min(len(sequence.tokens) - sequence.num_computed, budget - behind, self.max_chunk_tokens)
            elif prompts_only:
                position += 1
                continue
            while not self.memory.grow(sequence, n):
                enough = False
                if self._preempt_youngest(sequence, n) is sequence:
                    break
            else:
                budget -= n
                chunks.append(self._chunk(sequence, n))
                planned[sequence.id] = sequence
                position += 1
        return budget, enough

    def _admit(self, chunks: list[Chunk], budget: int, enough: bool) -> None:
        """Waiting sequences, while budget, places and slots last; none when memory was just found too small."""
        planned = self._planned
        assert planned is not None, "no step is open"
        self._waiting_cause = None
        while self._waiting:
            if not enough:
                self._waiting_cause = "memory was just found too small"
                break
            if not budget or len(self._running) >= self.max_sequences:
                self._waiting_cause = "no place" if budget else "no budget"
                break
            sequence = self._waiting[0]
            reserve = self.watermark_slots if self._running else 0
            admission = self.memory.admit(sequence, min(budget, self.max_chunk_tokens), reserve)
            if admission is None:
                self._waiting_cause = "no blocks"
                break
            self._waiting.pop(0)
            insort(self._running, sequence, key=_rank)
            sequence.status = Status.RUNNING
            sequence.num_computed = admission.num_cached
            self._events.append(Event("admit", sequence.id, f"{admission.num_cached} of {len(sequence.tokens)} cached"))
            budget -= admission.num_new
            chunks.append(self._chunk(sequence, admission.num_new))
            planned[sequence.id] = sequence

    def _finished_plan(self, chunks: list[Chunk]) -> StepPlan:
        """What was decided, with the memory operations that belong to it."""
        self.num_steps += 1
        return StepPlan(self.num_steps - 1, chunks, self.memory.take_operations())

    def commit(self, plan: StepPlan, result: StepResult) -> list[Sequence]:
        """Book a step that went well: advance, append what was drawn, finish and release.

        Returns:
            Each sequence that got a token or ended, once: the plan's in its order, then those that were cancelled
            meanwhile.
        """
        assert self._planned is not None, "no step is open"
        planned = self._planned
        self.memory.end_step()
        changed: list[Sequence] = []
        for chunk, draws in zip(plan.chunks, result.draws, strict=True):
            sequence = planned[chunk.sequence]
            sequence.num_computed += len(chunk.token_ids)
            if sequence.num_computed > sequence.peak_computed:
                sequence.peak_computed = sequence.num_computed
            if not draws:
                continue
            drawing = [sequence] if sequence.request.forked else [sequence, *self._fork_others(sequence)]
            for drawer, draw in zip(drawing, draws, strict=True):
                if drawer.status is not Status.FINISHED:
                    drawer.tokens.append(draw.token_id)
                    drawer.draws.append(draw)
                    changed.append(drawer)
        for sequence in changed:  # after all forks: nobody's blocks go before they are shared
            if sequence.tokens[-1] in sequence.request.stop_token_ids:
                self._end(sequence, "stop")
            elif len(sequence.draws) >= sequence.request.params.max_tokens:
                self._end(sequence, "length")
        ended = self._close_step()
        return list(dict.fromkeys(changed + ended)) if ended else changed

    def fail(self, plan: StepPlan, error: str) -> list[Sequence]:
        """Book a step whose forward pass raised: its requests end with `error`, their blocks return.

        Args:
            plan: the open plan, which says how many of its memory operations were carried out.
            error: one line for the user.

        Returns:
            The sequences that ended.
        """
        assert self._planned is not None, "no step is open"
        planned = self._planned
        self.memory.abort_step(plan.memory_ops[plan.num_executed_ops :])
        ended: list[Sequence] = []
        for request in {sequence.request.id: sequence.request for sequence in planned.values()}.values():
            request.error = error
            for sequence in request.sequences:
                if sequence.status is not Status.FINISHED:
                    self._end(sequence, "error")
                    ended.append(sequence)
        return list(dict.fromkeys(ended + self._close_step()))

    # Within ----------------------------------------------------------------------------------------------------------

    def _chunk(self, sequence: Sequence, n: int) -> Chunk:
        start = sequence.num_computed
        end = start + n
        tokens = sequence.tokens
        request = sequence.request
        draws = 0 if end < len(tokens) else 1 if request.forked else len(request.sequences) - sequence.index
        return Chunk(sequence.id, start, tokens[start:end], self.memory.table(sequence), draws, sequence.sampling)

    def _preempt_youngest(self, needy: Sequence, n: int) -> Sequence:
        """Take the youngest running sequence's slots back; it waits, with what it has drawn, to be computed again."""
        victim = self._running.pop()
        self.memory.release(victim)
        cause = f"sequence {needy.id} needs room for tokens[{needy.num_computed}:{needy.num_computed + n}]"
        self._events.append(Event("preempt", victim.id, cause))
        victim.status = Status.WAITING
        victim.num_computed = 0
        victim.num_preemptions += 1
        self._wait(victim)
        return victim

    def _leave(self, sequence: Sequence) -> None:
        """A running sequence has ended: its place and its slots are free for the next step."""
        del self._running[bisect_left(self._running, sequence.rank, key=_rank)]
        self.memory.release(sequence)

    def _wait(self, sequence: Sequence) -> None:
        insort(self._waiting, sequence, key=_rank)

    def _stop_waiting(self, sequence: Sequence) -> bool:
        """Take it out of the queue; False for one that is not in it, since it is still to be forked."""
        place = bisect_left(self._waiting, sequence.rank, key=_rank)
        if place == len(self._waiting) or self._waiting[place] is not sequence:
            return False
        del self._waiting[place]
        return True

    def _fork_others(self, lead: Sequence) -> list[Sequence]:
        """The prompt is computed: the request's other sequences start where the first one stands.

        One that finds no place among the running starts as preempted. One that was ended already is not started.
        """
        lead.request.forked = True
        followers = lead.request.sequences[lead.index + 1 :]
        for follower in followers:
            if follower.status is Status.FINISHED:
                continue
            follower.peak_computed = lead.num_computed
            if len(self._running) < self.max_sequences:
                self.memory.fork(lead, follower)
                follower.num_computed = lead.num_computed
                follower.status = Status.RUNNING
                insort(self._running, follower, key=_rank)
                self._events.append(Event("fork", follower.id, f"from sequence {lead.id}"))
            else:
                self._events.append(Event("wait", follower.id, f"{self.max_sequences} sequences run already"))
                self._wait(follower)
                if self._waiting[0] is follower:
                    self._waiting_cause = "no place"
        return followers

    def _close_step(self) -> list[Sequence]:
        """The step is over: end those who were to be ended in the middle of it."""
        self._planned = None
        asked_for, self._end_after_step = self._end_after_step, []
        ended = [sequence for sequence, _ in asked_for if sequence.status is not Status.FINISHED]
        for sequence, reason in asked_for:
            self._end(sequence, reason)
        return ended


def _rank(sequence: Sequence) -> tuple[Any, int, int]:
    return sequence.rank
