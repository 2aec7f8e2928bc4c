"""What lesson 8's exercise is given: the engine's scheduler, with a frame in which the three decisions are left open.

The frame opens and closes each step. What is no decision of this lesson it leaves to the engine's own: sharing a step
among long prompts (lesson 9), answers that part (lesson 11), taking slots back when memory runs out (lesson 12).
"""

from __future__ import annotations

from minipaged import scheduler
from minipaged.plan import Chunk, Draw, StepPlan, StepResult
from minipaged.request import Sequence, Status
from minipaged.trace import Event


class GivenScheduler(scheduler.Scheduler):
    """A scheduler without its decisions: who is in the step, what a draw means, what leaving is.

    Attributes:
        places: the sequences that run, oldest first.
        queue: the sequences that wait, oldest first.
        max_sequences: so many may run at the same time.
        memory: whom to ask for token slots; `memory.release(sequence)` takes a sequence's slots back.
    """

    _chunks: list[Chunk]  # of the open step
    _left: int  # of the open step's budget
    _preempted: bool  # whether memory was found too small in the open step
    _refused: bool  # whether memory has refused an admission in the open step

    @property
    def places(self) -> list[Sequence]:
        return self._running

    @property
    def queue(self) -> list[Sequence]:
        return self._waiting

    # The three decisions ---------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """See the exercise."""
        raise NotImplementedError

    def book(self, sequence: Sequence, num_tokens: int, draw: Draw | None) -> None:
        """See the exercise."""
        raise NotImplementedError

    def leave(self, sequence: Sequence) -> None:
        """See the exercise."""
        raise NotImplementedError

    # What they may use -----------------------------------------------------------------------------------------------

    def compute(self, sequence: Sequence, n: int | None = None) -> int:
        """Put a running sequence into the step.

        Args:
            sequence: has a place, and is not in the step yet.
            n: how many of its tokens; None leaves that to the frame: all that are not computed yet, if the step has
                room for them.

        Returns:
            How many of its tokens the step computes. 0 when there is no room for one: the step is full, or memory is
            and the sequence had to give its place up.
        """
        if sequence.status is not Status.RUNNING:  # it had to give way to an older one in this very step
            return 0
        planned = self._open()
        if sequence.id in planned:
            raise ValueError(f"compute: sequence {sequence.id} is in the step already; each is there once")
        if n is None:
            behind = sum(other.id not in planned for other in self._running) - 1
            n = min(self.uncomputed(sequence), self._left - behind, self.max_chunk_tokens)
            if n < 1:
                return 0
        while not self.memory.grow(sequence, n):
            self._preempted = True
            if self._preempt_youngest(sequence, n) is sequence:
                return 0
        self._plan(sequence, n)
        return n

    def admit(self, sequence: Sequence, n: int | None = None) -> int:
        """Ask memory for a waiting sequence's slots. When it gets them, its first tokens go into the step.

        Its place in `places` and `queue` is for the caller to change.

        Args:
            sequence: waits.
            n: how many of its tokens at most; None for as many as the step has room for.

        Returns:
            How many of its tokens the step computes; 0 when it must go on waiting. Nothing has changed then.
        """
        if self._preempted or (n is None and not self._left):
            return 0
        want = min(self._left, self.max_chunk_tokens) if n is None else n
        reserve = self.watermark_slots if self._running else 0
        admission = self.memory.admit(sequence, want, reserve)
        if admission is None:
            self._refused = True
            return 0
        sequence.status = Status.RUNNING
        sequence.num_computed = admission.num_cached
        self._events.append(Event("admit", sequence.id, f"{admission.num_cached} of {len(sequence.tokens)} cached"))
        self._plan(sequence, admission.num_new)
        return admission.num_new

    def uncomputed(self, sequence: Sequence) -> int:
        """How many tokens of a running sequence are still to be computed; those that another one has computed
        meanwhile are shared (lesson 10). 0 for one that had to give way in this step."""
        if sequence.status is not Status.RUNNING:
            return 0
        if len(sequence.tokens) - sequence.num_computed > 1:
            sequence.num_computed += self.memory.continue_walk(sequence)
        return len(sequence.tokens) - sequence.num_computed

    def end(self, sequence: Sequence, reason: str) -> None:
        """A running sequence has ended, by "stop" or "length": it leaves, and its request is told."""
        self._end(sequence, reason)

    # The frame -------------------------------------------------------------------------------------------------------

    def schedule(self) -> StepPlan:
        """As the engine's own: open a step, fill it, hand it over."""
        assert self._planned is None, "the last step was neither committed nor failed"
        self._planned, self._chunks = {}, []
        self._left, self._preempted, self._refused = self.max_batch_tokens, False, False
        self.fill()
        for line in (self._running, self._waiting):  # whoever came back, or has another priority, stands by rank
            line.sort(key=lambda sequence: sequence.rank)
        self._waiting_cause = self._cause() if self._waiting else None
        self.num_steps += 1
        return StepPlan(self.num_steps - 1, self._chunks, self.memory.take_operations())

    def commit(self, plan: StepPlan, result: StepResult) -> list[Sequence]:
        """As the engine's own, which does it in the steps in which a request's answers part."""
        if any(len(draws) > 1 for draws in result.draws):
            return super().commit(plan, result)
        planned = self.planned
        self.memory.end_step()
        changed: list[Sequence] = []
        for chunk, draws in zip(plan.chunks, result.draws, strict=True):
            sequence = planned[chunk.sequence]
            if draws:
                sequence.request.forked = True  # it has this one answer, so nobody else starts here
                changed.append(sequence)
            self.book(sequence, len(chunk.token_ids), draws[0] if draws else None)
            sequence.peak_computed = max(sequence.peak_computed, sequence.num_computed)
        return list(dict.fromkeys(changed + self._close_step()))

    def _leave(self, sequence: Sequence) -> None:
        self.leave(sequence)

    def _plan(self, sequence: Sequence, n: int) -> None:
        self._left -= n
        self._chunks.append(self._chunk(sequence, n))
        self._open()[sequence.id] = sequence

    def _open(self) -> dict[int, Sequence]:
        assert self._planned is not None, "no step is open: `fill` is called by the frame"
        return self._planned

    def _cause(self) -> str:
        if self._preempted:
            return "memory was just found too small"
        if self._refused:
            return "no blocks"
        return "no budget" if self._left < 1 else "no place"
