"""Service: an engine on virtual time. The scheduler, the memory and the engine are the real ones; only what a step
computes, and how long it takes, is pretended.

    figures = serve(PAGED, read_traffic(path), preset("h100-llama-8b"))

Two services that stand beside each other on the same traffic are brought to the same moment by `run_until`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minipaged.config import ModelConfig
from minipaged.cost_model import CostModel
from minipaged.engine import Engine
from minipaged.interrupts import Uninterrupted
from minipaged.memory.contiguous.contiguous_cache import ContiguousCache
from minipaged.request import Request
from minipaged.sampling_params import SamplingParams
from minipaged.scripted_runner import END_OF_TEXT, ScriptedRunner, words_until
from minipaged.serving.figures import ServingFigures
from minipaged.serving.meter import ServingMeter
from minipaged.serving.policy import Policy, Room
from minipaged.timed_runner import TimedRunner
from minipaged.trace import Listener, StepRecord
from minipaged.traffic import TimedRequest
from minipaged.virtual_clock import VirtualClock

_STEPS_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """What a service has, whatever its policy.

    Args:
        num_slots: token slots of the device; None takes what the cost model's preset leaves for them.
        num_host_slots: token slots of the host, for a policy that swaps; None takes four times as many.
        block_size: token slots in a block.
        max_batch_tokens: tokens in a step at most.
        max_sequences: sequences that run at the same time at most.
        max_tokens: what a user who says nothing allows for an answer. A longer one is cut there.
        long_from: tokens of prompt and answer above which a request counts as long.
    """

    num_slots: int | None = None
    num_host_slots: int | None = None
    block_size: int = 16
    max_batch_tokens: int = 2048
    max_sequences: int = 256
    max_tokens: int = 2048
    long_from: int = 1024


class Service:
    """Serves what it is given, a step at a time.

    Args:
        policy: how.
        cost_model: how long each step takes.
        config: with what.
        listeners: called with the record of every step.
    """

    def __init__(
        self,
        policy: Policy,
        cost_model: CostModel,
        config: ServiceConfig | None = None,
        listeners: Iterable[Listener] = (),
    ) -> None:
        config = ServiceConfig() if config is None else config
        self.policy = policy
        self.config = config
        self.clock = VirtualClock()
        network = cost_model.network
        self._context = network.max_positions
        num_slots = network.kv_slots if config.num_slots is None else config.num_slots
        num_host_slots = 4 * num_slots if config.num_host_slots is None else config.num_host_slots
        self._final_slots: dict[int, int] = {}  # by sequence; each request has one, with the same number
        self._requests: dict[int, Request] = {}
        room = Room(num_slots, num_host_slots, config.block_size, network.max_positions, self._final_slots)
        self.memory = policy.memory(room)
        self.scheduler = policy.scheduler(
            self.memory,
            max_batch_tokens=policy.max_batch_tokens or config.max_batch_tokens,
            max_sequences=config.max_sequences,
            max_chunk_tokens=policy.max_chunk_tokens,
            max_positions=network.max_positions,
            watermark_slots=int(policy.watermark * num_slots),
            order=policy.order,
        )
        block_size = self.memory.block_size
        needs_one_piece = isinstance(self.memory, ContiguousCache)
        self.meter = ServingMeter(block_size, self._slots_wanted if needs_one_piece else None, config.long_from)
        self.runner = TimedRunner(ScriptedRunner(words_until(self._final_slots)), cost_model, self.clock, block_size)
        no_limit = 2**62  # tokens stand for requests and hashes, of which there is no end
        self.engine = Engine(
            self.scheduler,
            self.runner,
            ModelConfig(no_limit, network.max_positions, 1, 1, 1, 1, 1, 1, eos_token_ids=(END_OF_TEXT,)),
            clock=self.clock,
            listeners=(self.meter, *listeners, self._forget),
        )

    @property
    def has_work(self) -> bool:
        """Whether a request is there that has not ended."""
        return self.engine.has_work

    def submit(self, request: TimedRequest) -> bool:
        """A request comes; its arrival may lie in the past, when a step was under way. False if it could never fit."""
        num_prompt = len(request.prompt_token_ids)
        limit = self.config.max_tokens if request.max_tokens is None else request.max_tokens
        max_tokens = max(1, min(limit, self._context - num_prompt + 1))  # no more than the context leaves
        num_output = min(request.num_output, max_tokens)
        params = SamplingParams(max_tokens=max_tokens, temperature=0, seed=0)
        number = self.engine.num_requests
        self._final_slots[number] = num_prompt + num_output - 1
        try:
            added = self.engine.add_request(request.prompt_token_ids, params, priority=request.priority)
        except ValueError:
            del self._final_slots[number]
            self.meter.refuse()
            return False
        self._requests[added.id] = added
        self.meter.expect(added.sequences[0].id, request.arrival_seconds, num_prompt, num_output)
        return True

    def run_until(self, seconds: float = float("inf")) -> None:
        """Step as long as there is work and the time has not come. The last step may end after it."""
        engine, clock = self.engine, self.clock
        while engine.has_work and clock.now < seconds:
            with Uninterrupted():  # for some steps together: a simulated one is shorter than the holding of signals
                for _ in range(_STEPS_TOGETHER):
                    engine.step()
                    if not engine.has_work or clock.now >= seconds:
                        break

    def receive(self, request: TimedRequest) -> bool:
        """Go on until the request arrives, and submit it."""
        self.run_until(request.arrival_seconds)
        self.clock.wait_until(request.arrival_seconds)
        return self.submit(request)

    def serve(self, traffic: Iterable[TimedRequest]) -> ServingFigures:
        """All of the traffic, to the last token."""
        for request in traffic:
            self.receive(request)
        self.run_until()
        return self.figures()

    def figures(self) -> ServingFigures:
        """What has come of it so far."""
        return self.meter.figures(self.policy.name)

    def _slots_wanted(self) -> int:
        """What the first that waits was refused, in slots."""
        assert isinstance(self.memory, ContiguousCache)
        return self.memory.slots_needed(self.scheduler.waiting[0], self.scheduler.max_batch_tokens)

    def _forget(self, record: StepRecord) -> None:
        for event in record.events:
            if event.kind == "finish":
                del self._final_slots[event.sequence]
                # Request and sequence know each other: parted, they go at once, and not when a collector comes by.
                self._requests.pop(event.sequence).sequences.clear()


def serve(
    policy: Policy,
    traffic: Iterable[TimedRequest],
    cost_model: CostModel,
    config: ServiceConfig | None = None,
    listeners: Iterable[Listener] = (),
) -> ServingFigures:
    """Serve the traffic by the policy.

    Args:
        policy: how.
        traffic: requests by their arrival.
        cost_model: how long each step takes.
        config: with what.
        listeners: called with the record of every step.
    """
    return Service(policy, cost_model, config, listeners).serve(traffic)
