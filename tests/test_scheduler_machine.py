"""A state machine over Scheduler and memory together: arrivals, cancellations, forks, and faults anywhere in the log.

Answers come from a simulated cache and must be exact; the oldest sequence advances in every step that goes well.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from minipaged.memory.kv_manager import KVManager
from minipaged.request import Request, Sequence, Status
from tests.house import House


class SchedulerMachine(RuleBasedStateMachine):
    """Whatever happens to whom, everybody else's answer is right, and everybody ends."""

    @initialize(
        num_blocks=st.integers(4, 24),
        host_blocks=st.sampled_from([0, 0, 1, 4, 30]),
        block_size=st.sampled_from([1, 2, 4, 4, 8, 32]),
        budget=st.integers(1, 40),
        max_sequences=st.integers(1, 6),
        max_chunk_tokens=st.none() | st.integers(1, 12),
        watermark_blocks=st.sampled_from([0, 1, 3]),
        share=st.sampled_from([True, True, True, False]),
    )
    def build(
        self,
        num_blocks: int,
        host_blocks: int,
        block_size: int,
        budget: int,
        max_sequences: int,
        max_chunk_tokens: int | None,
        watermark_blocks: int,
        share: bool,
    ) -> None:
        self.house = House(
            num_blocks,
            block_size,
            budget=budget,
            max_sequences=min(max_sequences, budget),
            max_chunk_tokens=max_chunk_tokens,
            watermark_blocks=watermark_blocks,
            host_blocks=host_blocks,
            share_prefixes=share,
        )
        self.slots = num_blocks * block_size
        self.prepare()

    def prepare(self) -> None:
        """For a machine that builds on this one."""

    @precondition(lambda self: self.house.scheduler.num_waiting < 8)
    @rule(
        family=st.integers(0, 2),
        length=st.integers(1, 60),
        own_tail=st.integers(0, 5),
        max_tokens=st.integers(1, 12),
        n=st.sampled_from([1, 1, 2, 4]),
        salt=st.sampled_from([None, None, "a"]),
    )
    def arrive(self, family: int, length: int, own_tail: int, max_tokens: int, n: int, salt: str | None) -> None:
        prompt = [(family + 1) * (i % 7 + 1) for i in range(length)] + [500 + len(self.house.requests)] * own_tail
        if len(prompt) + max_tokens - 1 <= self.slots:
            self.house.add(prompt, max_tokens=max_tokens, n=n, cache_salt=salt)

    @precondition(lambda self: self._unfinished())
    @rule(data=st.data(), whole=st.booleans())
    def cancel(self, data: st.DataObject, whole: bool) -> None:
        request = data.draw(st.sampled_from(self._unfinished()).map(lambda request: request.id))
        found = self.house.requests[request]
        if whole:
            self.house.engine.cancel(found)
        else:
            index = data.draw(st.integers(0, len(found.sequences) - 1))
            self.house.engine.finish(found.sequences[index], "cancelled")
        self.house.memory.check()

    @rule(times=st.integers(1, 5))
    def step(self, times: int) -> None:
        for _ in range(times):
            if self.house.engine.has_work:
                self._step_well()

    @precondition(lambda self: self.house.engine.has_work)
    @rule(share_executed=st.floats(0, 1))
    def step_that_fails(self, share_executed: float) -> None:
        """The fault comes after some of the memory operations, or after everything was computed."""
        runner, step = self.house.runner, self.house.scheduler.num_steps
        # How many operations the plan will have is not known yet: a slice takes what there is.
        if share_executed == 1:
            runner.fail_in_steps.add(step)
        else:
            runner.fail_after_ops[step] = int(share_executed * 12)
        self.house.step()
        (plan,) = runner.plans[-1:]
        in_step = {chunk.sequence for chunk in plan.chunks}
        for request in self.house.requests:
            if any(sequence.id in in_step for sequence in request.sequences):
                assert request.finished and request.error

    @precondition(lambda self: self._unfinished() and self.house.engine.has_work)
    @rule(data=st.data())
    def cancel_during_a_step(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(self._unfinished()).map(lambda request: request.id))
        self.house.runner.during_run = lambda: self.house.engine.cancel(self.house.requests[id])
        self.house.step()
        assert self.house.requests[id].finished

    def teardown(self) -> None:
        if not hasattr(self, "house"):
            return
        steps = 0
        while self.house.engine.has_work:
            self._step_well()
            steps += 1
            assert steps < 20_000, "it does not come to an end"
        for request in self.house.requests:
            for sequence in request.sequences:
                assert sequence.status is Status.FINISHED
                if sequence.finish_reason == "length":
                    assert len(sequence.draws) == request.params.max_tokens
        self.house.assert_answers_right()
        self.house.assert_empty()
        memory = self.house.memory
        if isinstance(memory, KVManager) and not memory.share_prefixes:
            assert memory.pool.num_free == memory.pool.num_blocks

    def _step_well(self) -> None:
        oldest = self._oldest()
        before = (oldest.num_computed, len(oldest.draws))
        running = {sequence: sequence.num_preemptions for sequence in self.house.scheduler.running}
        computed = self.house.step()
        for sequence, num_preemptions in running.items():
            assert computed.get(sequence.id, 0) > 0 or sequence.num_preemptions > num_preemptions, "nobody is starved"
        assert computed.get(oldest.id, 0) > 0, "the oldest always advances"
        assert (oldest.num_computed, len(oldest.draws)) != before
        assert sum(computed.values()) <= self.house.scheduler.max_batch_tokens
        for sequence in self.house.scheduler.running:
            assert len(sequence.tokens) > sequence.num_computed
        ranks = [sequence.rank for sequence in self.house.scheduler.running]
        assert ranks == sorted(ranks)

    def _oldest(self) -> Sequence:
        """The oldest that runs; an older one that waits can only be a fork that found no place."""
        scheduler = self.house.scheduler
        return (scheduler.running or scheduler.waiting)[0]

    def _unfinished(self) -> list[Request]:
        return [request for request in self.house.requests if not request.finished]


TestScheduler = SchedulerMachine.TestCase
