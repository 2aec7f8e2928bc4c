"""`minipaged watch`: a workload on the real engine, step by step, with its blocks, tables and queues to be seen.

Puts the parts together: the requests come from `workload`, the engine's books go through a recorder into a trace in
memory, and what is shown is drawn from that trace alone, by `viz`. Without a terminal the run is only summed up.
"""

from __future__ import annotations

import argparse
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minipaged.cli.options import add_engine_options, add_model_option, engine_options, settle_threads
from minipaged.cli.recording import add_record_option, replay_hint, say_why_no_picture
from minipaged.cli.workload import BUILT_IN, Arrival, read_workload
from minipaged.request import Request

if TYPE_CHECKING:
    from minipaged.llm import LLM, Stream

# A pool in which the built-in workload meets everything there is to see. On a larger one, nothing need ever move.
SMALL = {"num_blocks": 32, "host_blocks": 12, "block_size": 8, "max_batch_tokens": 48, "max_sequences": 8}
# `against.OTHERS` by their names: the module loads torch, and --help should not.
AGAINST = ("reserve-max", "buddy", "static", "no-sharing")
DEFAULT_SPEED = 8.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged watch`."""
    parser.description = (
        "Run a workload on the real engine and watch its blocks: who owns each, how full it is, who shares it, what "
        "was evicted, swapped or copied, and why. Pause it, go back, follow one sequence. In the picture, ? says what "
        "the keys do."
    )
    parser.epilog = "The pools are small by default, so that everything happens."
    parser.add_argument(
        "--workload",
        metavar="FILE",
        type=Path,
        default=BUILT_IN,
        help='requests, one JSON object a line: {"prompt": TEXT or token ids, "arrive_step": N, "title": TEXT, '
        '"max_tokens": N, "n": N, "temperature": T, …} (default: a dozen, built in)',
    )
    parser.add_argument(
        "--against",
        choices=AGAINST,
        help="the same arrivals through another memory, too, side by side, until the two part: a region for the prompt "
        "and max_tokens, the same in powers of two, the same in static batches, or blocks without sharing",
    )
    add_speed_option(parser)
    add_record_option(parser)
    add_model_option(parser)
    add_engine_options(parser, SMALL)


def run(args: argparse.Namespace) -> int:
    """Runs the workload; 1 when a forward pass failed, 130 when Ctrl-C ended it. What ran is summed up in any case."""
    speed = parse_speed(args.speed)
    arrivals = read_workload(args.workload)
    if args.record and os.path.exists(args.record) and os.path.samefile(args.record, args.workload):
        raise ValueError(f"watch: --record {args.record} is the workload itself; name another file")

    if args.against:
        from minipaged.cli.against import show

        return show(args.against, args.model, _options(args), arrivals, speed, args.record)

    from contextlib import ExitStack

    from rich.console import Console

    from minipaged.llm import LLM
    from minipaged.recorder import Recorder
    from minipaged.trace_file import LiveTrace, TraceWriter
    from minipaged.viz.answers import Answers
    from minipaged.viz.history import History
    from minipaged.viz.player import Player
    from minipaged.viz.stage import perform, why_no_picture
    from minipaged.viz.summary import summary

    console = Console(highlight=False)
    llm = LLM(args.model, **_options(args))
    settle_threads(llm)
    feed = Feed(llm, arrivals)
    with ExitStack() as stack:
        trace = LiveTrace()
        sinks = [stack.enter_context(TraceWriter(args.record))] if args.record else []
        recorder = Recorder(llm.engine, trace, *sinks, description=llm.description, title=feed.title)
        stack.enter_context(recorder)

        def step() -> bool:
            if feed.step():
                return True
            if is_behind := recorder.is_behind:
                llm.step()  # computes nothing; it has a record of who ended after the last step
            return is_behind

        status = 0
        try:
            if why := why_no_picture(console):
                say_why_no_picture(why)
                print(llm.description)
                while step():
                    pass
            else:
                history = History(trace)
                answers = Answers(history, llm.tokenizer.decode) if llm.tokenizer else None
                step()  # there is one to be shown
                player = Player(history, live=True, speed=speed, has_texts=answers is not None)
                perform(player, console, step=step, answers=answers)
        except KeyboardInterrupt:
            status = 130
            print("\nInterrupted. Until then:")
        print("\n".join(summary(trace)))
    if args.record:
        print(replay_hint(args.record))
    return status or int(feed.failed or bool(recorder.failures))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The user's, and for the rest the small ones; a pool whose bytes are given has no number of blocks."""
    given = engine_options(args)
    small: dict[str, Any] = dict(SMALL)
    for in_blocks, in_bytes in (("num_blocks", "kv_cache_bytes"), ("host_blocks", "host_cache_bytes")):
        if in_bytes in given:
            del small[in_blocks]
    return small | given


class Feed:
    """Hands requests to an engine when their step has come.

    Args:
        llm: what answers them.
        arrivals: in their order.

    Raises:
        ValueError: one could never run, or is no prompt for this model; the message says which.
    """

    def __init__(self, llm: LLM, arrivals: list[Arrival]) -> None:
        self._llm = llm
        self._arrivals = deque(arrivals)
        self._streams: list[Stream] = []  # a stream that is let go cancels its request
        self._titles: dict[int, str] = {}
        self._require_fit([self._request(arrival, number) for number, arrival in enumerate(arrivals)])

    @property
    def failed(self) -> bool:
        """Whether a forward pass has failed under a request."""
        return any(stream.request.error is not None for stream in self._streams)

    def title(self, request: Request) -> str:
        """A few words about a request."""
        return self._titles.get(request.id, "")

    @property
    def is_done(self) -> bool:
        """Nobody is left to come, and nothing left to do."""
        return not self._arrivals and not self._llm.engine.has_work

    def bring(self, *, idle: bool) -> None:
        """Submit those whose step has come; with `idle` the next ones too: nobody waits for a step that is not made."""
        engine = self._llm.engine
        while self._arrivals and (self._arrivals[0].arrive_step <= engine.scheduler.num_steps or idle):
            idle = False
            arrival = self._arrivals.popleft()
            prompt = arrival.prompt if isinstance(arrival.prompt, str) else list(arrival.prompt)
            self._streams.append(self._llm.stream(prompt, arrival.params))
            self._titles[self._streams[-1].request.id] = arrival.title

    def step(self) -> bool:
        """Submits those whose step has come and runs a step of the engine; False when nothing is left to do."""
        self.bring(idle=not self._llm.engine.has_work)
        if self.is_done:
            return False
        self._llm.step()
        return True

    def _request(self, arrival: Arrival, number: int) -> Request:
        """What will be asked of the engine; `number` will be the request's."""
        llm, prompt = self._llm, arrival.prompt
        if llm.tokenizer is None and (isinstance(prompt, str) or arrival.params.stop):
            raise ValueError(
                f"{arrival.origin}: this model has no tokenizer.json; give a --workload of token ids, and no stop "
                "strings"
            )
        if isinstance(prompt, str):
            assert llm.tokenizer is not None
            prompt = tuple(llm.tokenizer.encode(prompt))
        last = llm.model_config.vocab_size - 1
        if max(prompt) > last:
            raise ValueError(f"{arrival.origin}: token id {max(prompt)} is above the model's last, {last}")
        return Request(number, prompt, arrival.params, 0, frozenset())

    def _require_fit(self, requests: list[Request]) -> None:
        """Now, and not in the middle of the show."""
        for request, arrival in zip(requests, self._arrivals, strict=True):
            try:
                self._llm.engine.scheduler.require_fit(request)
            except ValueError as error:
                raise ValueError(f"{arrival.origin}: {error}; {self._what_fits(requests)}") from None

    def _what_fits(self, requests: list[Request]) -> str:
        """What a user can do about a request that does not fit."""
        scheduler = self._llm.engine.scheduler
        slots = max(len(request.prompt_token_ids) + request.params.max_tokens - 1 for request in requests)
        if scheduler.max_positions is not None and slots > scheduler.max_positions:
            return "give a --workload of shorter ones"
        if scheduler.memory.max_sequence_slots < scheduler.memory.total_slots:  # regions that are powers of two
            return "give more --blocks"
        return f"give --blocks {-(-slots // self._llm.kv_cache.block_size)} or more"


def add_speed_option(parser: argparse.ArgumentParser) -> None:
    """--speed."""
    parser.add_argument(
        "--speed",
        default=f"{DEFAULT_SPEED:g}",
        metavar="N",
        help=f"steps per second (default {DEFAULT_SPEED:g})",
    )


def parse_speed(text: str) -> float:
    """Steps per second: above 0.

    Raises:
        ValueError: anything else.
    """
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise ValueError(f"--speed is {text!r}; it must be steps per second, above 0, such as 8")
    return speed
