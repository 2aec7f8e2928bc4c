"""What a moment of a trace must say, asked of the books themselves."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count

from minipaged.engine import Engine
from minipaged.memory.kv_manager import KVManager
from minipaged.request import Sequence
from minipaged.trace import Moment, NodeState, SequenceState, StepRecord, TraceHeader


class Witness:
    """A listener that notes, after each step, what the books say; and lets the engine's clock tick evenly."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.moments: list[Moment] = []
        ticks = count()
        engine.clock = lambda: next(ticks) / 4
        engine.listeners.append(self)

    def __call__(self, record: StepRecord) -> None:
        self.moments.append(moment_of(self.engine, record))


def header_of(engine: Engine, description: str = "") -> TraceHeader:
    """What stays the same."""
    scheduler, memory = engine.scheduler, engine.scheduler.memory
    assert isinstance(memory, KVManager)
    return TraceHeader(
        memory.pool.num_blocks,
        memory.swap.num_blocks if memory.swap else 0,
        memory.block_size,
        memory.block_bytes,
        scheduler.max_batch_tokens,
        scheduler.max_sequences,
        description,
    )


def moment_of(engine: Engine, record: StepRecord, description: str = "") -> Moment:
    """The books as they are."""
    scheduler, memory = engine.scheduler, engine.scheduler.memory
    assert isinstance(memory, KVManager)
    nodes = {
        node.id: NodeState(node.id, node.parent.id, node.tokens, node.device, node.host)
        for node in memory.tree
        if node.parent is not None
    }

    def state(sequence: Sequence, running: bool) -> SequenceState:
        return SequenceState(
            sequence.id,
            sequence.request.id,
            sequence.index,
            running,
            len(sequence.request.prompt_token_ids),
            len(sequence.tokens),
            sequence.num_computed,
            sequence.num_preemptions,
            memory.table(sequence),
            f"request {sequence.request.id}",
        )

    return Moment(
        header_of(engine, description),
        record,
        tuple(state(sequence, True) for sequence in scheduler.running),
        tuple(state(sequence, False) for sequence in scheduler.waiting),
        nodes,
        asdict(memory.stats()),
    )


def assert_blocks_are_the_books(moment: Moment, memory: KVManager) -> None:
    """Owners, counts, content and tiers, block by block, against pool and tree."""
    tables = {sequence.sequence: sequence.blocks for sequence in moment.running}
    free, evictable = set(memory.pool.free_blocks), set(memory.pool.eviction_order)
    on_device = {node.device: node.id for node in memory.tree if node.device is not None}
    assert [state.block for state in moment.device_blocks] == list(range(memory.pool.num_blocks))
    for state in moment.device_blocks:
        assert len(state.holders) == memory.pool.count(state.block)
        assert all(state.block in tables[holder] for holder in state.holders)
        assert state.node == on_device.get(state.block)
        assert (not state.holders and state.node is None) == (state.block in free)
        assert (not state.holders and state.node is not None) == (state.block in evictable)
        assert (state.fill > 0) == (state.block not in free), "a block that is held or cached holds a token"
    held = [state for state in moment.device_blocks if state.holders]
    assert sum(state.fill for state in held) == memory.live_slots
    on_host = {node.host: node.id for node in memory.tree if node.host is not None}
    assert list(moment.host_blocks) == [on_host.get(block) for block in range(moment.header.num_host_blocks)]
