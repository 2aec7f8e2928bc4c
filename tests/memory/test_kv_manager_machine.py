"""A state machine over KVManager: any order of actions, every block's content known, the books checked after each.

The model is obviously right: a simulated cache that stores in each slot the token whose K and V would lie there. Every
table must read back its own sequence, whatever was shared, copied, evicted, swapped or failed on the way.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minipaged.memory.kv_manager import KVManager
from minipaged.plan import Chunk, MemoryOp, Sampling, StepPlan
from minipaged.request import Request, Sequence
from minipaged.sampling_params import SamplingParams
from minipaged.simulation import SimulatedRunner
from tests.house import manager

SAMPLING = Sampling(1.0, None, 1.0, 0, 0, 0)


class KVManagerMachine(RuleBasedStateMachine):
    """Sequences come, grow, fork and go; steps end well or fail anywhere."""

    @initialize(
        num_blocks=st.integers(1, 24),
        host_blocks=st.sampled_from([0, 0, 1, 2, 3, 8, 30]),
        block_size=st.sampled_from([1, 2, 2, 3, 4, 8, 32]),
        share=st.sampled_from([True, True, True, False]),
    )
    def build(self, num_blocks: int, host_blocks: int, block_size: int, share: bool) -> None:
        self.memory: KVManager = manager(num_blocks, block_size, host_blocks, share_prefixes=share)
        self.cache = SimulatedRunner(num_blocks, block_size, 10, host_blocks)
        self.sequences: list[Sequence] = []
        self.running: list[Sequence] = []
        self.chunks: dict[int, Chunk] = {}  # of the open step, by sequence
        self.num_made = 0

    # Requests --------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.sequences) < 8)
    @rule(
        base=st.sampled_from([(1,), (1, 2), (1, 1, 1, 2), (2, 1)]),
        length=st.integers(1, 40),
        change=st.none() | st.tuples(st.integers(0, 39), st.integers(1, 3)),
        salt=st.sampled_from([None, None, None, "a"]),
    )
    def arrive(self, base: tuple[int, ...], length: int, change: tuple[int, int] | None, salt: str | None) -> None:
        """Prompts from a few families, so that equal and nearly equal ones are common."""
        tokens = [base[i % len(base)] for i in range(length)]
        if change is not None and change[0] < length:
            tokens[change[0]] = change[1]
        request = Request(self.num_made, tuple(tokens), SamplingParams(), seed=0, cache_salt=salt)
        self._make(request, tokens)

    def _make(self, request: Request, tokens: list[int]) -> Sequence:
        sequence = Sequence(self.num_made, request, len(request.sequences), list(tokens), SAMPLING)
        request.sequences.append(sequence)
        self.sequences.append(sequence)
        self.num_made += 1
        return sequence

    @precondition(lambda self: self._waiting())
    @rule(data=st.data(), want=st.integers(1, 50), reserve=st.sampled_from([0, 0, 0, 5]))
    def admit(self, data: st.DataObject, want: int, reserve: int) -> None:
        sequence = data.draw(st.sampled_from(self._waiting()))
        before = self._books()
        admission = self.memory.admit(sequence, want, reserve)
        if admission is None:
            assert self._books() == before, "a refusal changes nothing"
            return
        assert 1 <= admission.num_new <= want
        assert admission.num_cached + admission.num_new <= len(sequence.tokens)
        sequence.num_computed = admission.num_cached
        self.running.append(sequence)
        self._plan(sequence, admission.num_new)

    @precondition(lambda self: self._idle())
    @rule(data=st.data(), n=st.integers(1, 50), token=st.integers(1, 3))
    def grow(self, data: st.DataObject, n: int, token: int) -> None:
        """Compute some of what is not computed; a sequence that has nothing left draws a token first."""
        sequence = data.draw(st.sampled_from(self._idle()))
        walked = 0
        if sequence.num_computed == len(sequence.tokens):
            sequence.tokens.append(token)
        elif len(sequence.tokens) - sequence.num_computed > 1:
            walked = self.memory.continue_walk(sequence)
            sequence.num_computed += walked
        assert sequence.num_computed < len(sequence.tokens)
        n = min(n, len(sequence.tokens) - sequence.num_computed)
        before = self._books()
        if self.memory.grow(sequence, n):
            self._plan(sequence, n)
        else:
            assert self._books() == before, "a refusal changes nothing"
            if walked:  # it may hold blocks that this step has yet to fill, so it takes part in the step or goes
                self._release(sequence)

    @precondition(lambda self: self._idle())
    @rule(data=st.data(), for_good=st.booleans())
    def release(self, data: st.DataObject, for_good: bool) -> None:
        """A preemption, or the end of the sequence."""
        sequence = data.draw(st.sampled_from(self._idle()))
        self._release(sequence)
        if for_good:
            self._forget(sequence)

    @precondition(lambda self: self._idle() and len(self.sequences) < 8)
    @rule(data=st.data(), token=st.integers(1, 3))
    def fork(self, data: st.DataObject, token: int) -> None:
        parent = data.draw(st.sampled_from(self._idle()))
        child = self._make(parent.request, parent.tokens)
        held = self.memory.pool.num_held
        self.memory.fork(parent, child)
        assert self.memory.pool.num_held == held, "a fork takes no block"
        child.num_computed = parent.num_computed
        if child.num_computed == len(child.tokens):
            child.tokens.append(token)
        self.running.append(child)

    # Steps -----------------------------------------------------------------------------------------------------------

    @rule()
    def end_step(self) -> None:
        plan = self._open_plan(self.memory.take_operations())
        self.cache.run(plan)
        for chunk in plan.chunks:
            sequence = self._by_id(chunk.sequence)
            end = chunk.start + len(chunk.token_ids)
            assert self.cache.context(chunk.block_table, end) == sequence.tokens[:end], "what attention reads"
        self.memory.end_step()
        for chunk in plan.chunks:
            sequence = self._by_id(chunk.sequence)
            sequence.num_computed += len(chunk.token_ids)
            sequence.peak_computed = max(sequence.peak_computed, sequence.num_computed)
        self.chunks.clear()
        for sequence in self.running:
            found = self.cache.context(self.memory.table(sequence), sequence.num_computed)
            assert found == sequence.tokens[: sequence.num_computed], "a table reads back its own sequence"

    @rule(share_executed=st.floats(0, 1), computed=st.booleans())
    def fail_step(self, share_executed: float, computed: bool) -> None:
        """The step fails after some of its operations, or after all of them and having computed something."""
        plan = self._open_plan(self.memory.take_operations())
        executed = len(plan.memory_ops) if computed else int(share_executed * len(plan.memory_ops))
        self.cache.run(StepPlan(0, plan.chunks if computed else [], plan.memory_ops[:executed]))
        self.memory.abort_step(plan.memory_ops[executed:])
        for chunk in plan.chunks:
            sequence = self._by_id(chunk.sequence)
            self._release(sequence)
            self._forget(sequence)
        self.chunks.clear()

    @invariant()
    def books_hold(self) -> None:
        if hasattr(self, "memory"):
            self.memory.check()
            stats = self.memory.stats()
            assert stats.free_blocks + stats.evictable_blocks + stats.held_blocks == self.memory.pool.num_blocks
            assert 0 <= self.memory.live_slots <= self.memory.held_slots

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        self.end_step()
        for sequence in list(self.running):
            self.memory.release(sequence)
            self.memory.check()
        assert self.memory.pool.num_available == self.memory.pool.num_blocks, "nothing leaks"
        for request in {sequence.request.id: sequence.request for sequence in self.sequences}.values():
            self.memory.end_request(request)
        self.memory.check()
        if not self.memory.share_prefixes:
            assert self.memory.pool.num_free == self.memory.pool.num_blocks, "nothing stays"

    # Within ----------------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[Sequence]:
        return [sequence for sequence in self.sequences if sequence not in self.running]

    def _idle(self) -> list[Sequence]:
        """Running, and not in the open step."""
        return [sequence for sequence in self.running if sequence.id not in self.chunks]

    def _by_id(self, id: int) -> Sequence:
        return next(sequence for sequence in self.sequences if sequence.id == id)

    def _plan(self, sequence: Sequence, n: int) -> None:
        start = sequence.num_computed
        table = self.memory.table(sequence)
        self.chunks[sequence.id] = Chunk(sequence.id, start, sequence.tokens[start : start + n], table, 0, SAMPLING)

    def _open_plan(self, operations: list[MemoryOp]) -> StepPlan:
        return StepPlan(0, list(self.chunks.values()), operations)

    def _release(self, sequence: Sequence) -> None:
        self.memory.release(sequence)
        self.running.remove(sequence)
        sequence.num_computed = 0

    def _forget(self, sequence: Sequence) -> None:
        self.sequences.remove(sequence)
        sequence.request.sequences.remove(sequence)
        if not sequence.request.sequences:
            self.memory.end_request(sequence.request)

    def _books(self) -> tuple[object, ...]:
        memory = self.memory
        counts = [memory.pool.count(block) for block in range(memory.pool.num_blocks)]
        tables = [memory.table(sequence) for sequence in self.sequences]
        host = memory.swap.drop_order if memory.swap else ()
        operations = len(memory.tiers.operations)
        return (
            counts, memory.pool.free_blocks, memory.pool.eviction_order, host, tables, operations,
            len(memory.tree), len(memory.tree.roots),
        )  # fmt: skip


TestKVManager = KVManagerMachine.TestCase
