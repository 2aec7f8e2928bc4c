"""A small run in which everything happens, for pictures and their tests: the real scheduler and memory, no model.

Prefixes are shared, three answers part from one prompt and copy before they write, the pool of 24 blocks is too small,
so that blocks are evicted, swapped out and back in, and sequences preempted. It is the same run every time.
"""

from __future__ import annotations

from itertools import count

from minipaged.config import ModelConfig
from minipaged.engine import Engine
from minipaged.memory.block_pool import BlockPool
from minipaged.memory.kv_manager import KVManager
from minipaged.memory.prefix_tree import PrefixTree
from minipaged.memory.swap import SwapManager
from minipaged.recorder import Recorder, Sink
from minipaged.sampling_params import SamplingParams
from minipaged.scheduler import Scheduler
from minipaged.simulation import SimulatedRunner
from minipaged.trace import Trace
from minipaged.trace_file import LiveTrace

NUM_BLOCKS, NUM_HOST_BLOCKS, BLOCK_SIZE = 24, 8, 4
BLOCK_BYTES = 4096  # as of a model with 1 KiB of K and V a token
VOCABULARY = 1000
STEP_SECONDS = 0.002

_SYSTEM = list(range(100, 110))  # two prompts begin with it; it ends in the middle of a block
# Arrival step, title, prompt, tokens of the answer, answers.
_WORK = (
    (0, "tea, with the system prompt", [*_SYSTEM, 1, 2, 3, 4], 16, 1),
    (0, "a story, three ways", [*range(200, 214)], 18, 3),
    (2, "coffee, with the system prompt", [*_SYSTEM, 5, 6, 7, 8, 9], 24, 1),
    (4, "a long question", [*range(300, 330)], 20, 1),
    (8, "a short one", [400, 401, 402], 20, 1),
    (30, "tea once more", [*_SYSTEM, 1, 2, 3, 4], 10, 1),
)


def example_trace(*sinks: Sink) -> Trace:
    """The run, recorded in memory, and in further sinks."""
    pool, swap = BlockPool(NUM_BLOCKS), SwapManager(NUM_HOST_BLOCKS)
    memory = KVManager(pool, PrefixTree(BLOCK_SIZE), swap, block_bytes=BLOCK_BYTES)
    scheduler = Scheduler(memory, max_batch_tokens=24, max_sequences=5)
    runner = SimulatedRunner(NUM_BLOCKS, BLOCK_SIZE, VOCABULARY, NUM_HOST_BLOCKS)
    ticks = count()  # the clock is read when a step begins and when it ends
    engine = Engine(
        scheduler,
        runner,
        ModelConfig(VOCABULARY, NUM_BLOCKS * BLOCK_SIZE, 1, 1, 1, 1, 1, 1),
        clock=lambda: next(ticks) * STEP_SECONDS,
    )
    pools = f"{NUM_BLOCKS} blocks of {BLOCK_SIZE} token slots, {NUM_HOST_BLOCKS} on the host"
    trace = LiveTrace()
    Recorder(
        engine,
        trace,
        *sinks,
        description=f"a simulated model; {pools}",
        title=lambda request: _WORK[request.id][1],
    )
    arrivals = list(_WORK)
    while arrivals or engine.has_work:
        while arrivals and arrivals[0][0] <= scheduler.num_steps:
            _, _, prompt, max_tokens, n = arrivals.pop(0)
            engine.add_request(prompt, SamplingParams(max_tokens=max_tokens, n=n, seed=0))
        engine.step()
    return trace


if __name__ == "__main__":
    trace = example_trace()
    for index in range(len(trace)):
        record = trace.moment(index).record
        events = ", ".join(f"{event.kind} {event.sequence}" for event in record.events)
        print(f"step {record.step:2d}: {record.num_tokens:2d} tokens, {len(record.operations)} blocks moved  {events}")
