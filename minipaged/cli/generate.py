"""`minipaged generate`: answers on standard output, piece by piece, and nothing else there.

All prompts are answered together; they are only shown one after the other, so while the first is read the others are
being written. What concerns the run (model, pool, speed) goes to standard error, and only to a terminal.

Knows `LLM.stream` and the terminal; does not know the engine.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from minipaged.cli.options import add_engine_options, add_model_option, engine_options, settle_threads
from minipaged.cli.recording import add_record_option, recording, replay_hint
from minipaged.cli.terminal_text import printable
from minipaged.sampling_params import SamplingParams

if TYPE_CHECKING:
    from minipaged.llm import LLM, Piece, Stream

DEFAULT_MAX_TOKENS = 256
VARIED_TEMPERATURE = 0.8
_MARK_ALONE = re.compile(r"[。？！.?!]?\n*")
_BEGINNING = re.compile(r"^[。？！.?!]?\n+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged generate`."""
    parser.description = "Answer prompts, streaming as tokens come. Several prompts are answered together."
    parser.epilog = 'example: minipaged generate "请解释什么是黑洞" "What is tea?"'
    parser.add_argument(
        "prompts", nargs="+", metavar="PROMPT", help="a text; '-' reads one from standard input, to its end"
    )
    add_model_option(parser)
    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help=f"tokens of an answer at most (default {DEFAULT_MAX_TOKENS})"
    )
    group.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        help="0 always takes the most probable token (the default; "
        f"{VARIED_TEMPERATURE} when -n, --top-k, --top-p or --seed ask for variety)",
    )
    group.add_argument("--top-k", type=int, metavar="K", help="draw among the K most probable tokens")
    group.add_argument("--top-p", type=float, metavar="P", help="draw among the fewest tokens that sum to P")
    group.add_argument("--seed", type=int, metavar="N", help="same seed, same answer")
    group.add_argument("-n", type=int, default=1, metavar="N", help="answers for each prompt (default 1)")
    group.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help=r"end at this text; \n is a newline; may be repeated",
    )
    group.add_argument("--ignore-eos", action="store_true", help="go on after the model's end-of-text token")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each prompt, one a line")
    add_record_option(parser)
    add_engine_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answers the prompts; 1 when a forward pass failed."""
    params = _sampling_params(args, args.max_tokens or DEFAULT_MAX_TOKENS)  # refused before torch is waited for
    prompts = [_prompt(argument) for argument in args.prompts]

    from minipaged.llm import LLM

    llm = LLM(args.model, **engine_options(args))
    settle_threads(llm)
    chatty = sys.stderr.isatty()
    if chatty:
        print(llm.description, file=sys.stderr)
    started_seconds = time.perf_counter()
    streams: list[Stream] = []
    for number, prompt in enumerate(prompts):
        if args.max_tokens is None:
            params = _sampling_params(args, _default_max_tokens(llm, prompt))
        try:
            streams.append(llm.stream(prompt, params))
        except ValueError as error:
            raise ValueError(f"prompt {number + 1}: {error}" if len(prompts) > 1 else str(error)) from None

    with recording(llm, args.record) as recorder:
        if args.json:
            for prompt, stream in zip(prompts, streams, strict=True):
                print(json.dumps(_answers(prompt, stream), ensure_ascii=False), flush=True)
        else:
            _show(prompts, streams, params.n)
    for stream in streams:
        if stream.request.error is not None:
            print(f"minipaged: the forward pass failed: {stream.request.error}", file=sys.stderr)
    if chatty:
        print(_summary(streams, time.perf_counter() - started_seconds), file=sys.stderr)
        if args.record:
            print(replay_hint(args.record), file=sys.stderr)
    failed = any(stream.request.error is not None for stream in streams)
    return int(failed or (recorder is not None and bool(recorder.failures)))


def _sampling_params(args: argparse.Namespace, max_tokens: int) -> SamplingParams:
    temperature = args.temperature
    if temperature is None:
        varied = args.n > 1 or args.top_k is not None or args.top_p is not None or args.seed is not None
        temperature = VARIED_TEMPERATURE if varied else 0.0
    return SamplingParams(
        n=args.n,
        max_tokens=args.max_tokens if args.max_tokens is not None else max_tokens,
        temperature=temperature,
        top_k=args.top_k,
        top_p=1.0 if args.top_p is None else args.top_p,
        seed=args.seed,
        stop=tuple(text.replace("\\n", "\n") for text in args.stop),
        ignore_eos=args.ignore_eos,
    )


def _default_max_tokens(llm: LLM, prompt: str) -> int:
    """Ends where context or pool do: what the user did not ask for must not be why a prompt is refused."""
    num_tokens = len(llm.tokenizer.encode(prompt)) if llm.tokenizer else 0
    slots = min(llm.model_config.max_positions, llm.engine.scheduler.memory.max_sequence_slots)
    return max(1, min(DEFAULT_MAX_TOKENS, slots - num_tokens + 1))


def _prompt(argument: str) -> str:
    text = argument
    if argument == "-":
        text = sys.stdin.read().removesuffix("\n")
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8 arrive as lone surrogates
        raise ValueError(f"the prompt {argument!a} is not valid UTF-8") from None
    return text


def _answers(prompt: str, stream: Stream) -> dict[str, Any]:
    """One prompt's object for --json."""
    texts: dict[int, str] = {}
    reasons: dict[int, str | None] = {}  # the piece's, since it knows of stop strings too
    for piece in stream:
        texts[piece.index] = texts.get(piece.index, "") + piece.text
        reasons[piece.index] = piece.finish_reason
    request = stream.request
    num_prompt_tokens = len(request.prompt_token_ids)
    num_completion_tokens = sum(len(sequence.draws) for sequence in request.sequences)
    answers: dict[str, Any] = {
        "prompt": prompt,
        "answers": [
            {
                "text": texts.get(sequence.index, ""),
                "token_ids": sequence.output_token_ids,
                "finish_reason": reasons.get(sequence.index, sequence.finish_reason),
            }
            for sequence in request.sequences
        ],
        "usage": {
            "prompt_tokens": num_prompt_tokens,
            "completion_tokens": num_completion_tokens,
            "total_tokens": num_prompt_tokens + num_completion_tokens,
        },
    }
    if request.error is not None:
        answers["error"] = request.error
    return answers


def _show(prompts: list[str], streams: list[Stream], n: int) -> None:
    """Prints every answer; under its prompt where there are several prompts, under its number where there are n."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def heading(text: str, style: str) -> None:
        console.print(Text(text, style=style))
        sys.stdout.flush()

    for number, (prompt, stream) in enumerate(zip(prompts, streams, strict=True)):
        if len(prompts) > 1:
            heading(("\n" if number else "") + f"> {_printable(prompt)}", "bold cyan")
        held: dict[int, list[Piece]] = {index: [] for index in range(n)}  # pieces of answers whose turn has not come
        pieces = iter(stream)
        for index in range(n):
            if n > 1:
                heading(f"[{index + 1}]", "bold")
            answer = _Answer()
            for piece in held[index]:
                answer.add(piece)
            while not answer.ended and (piece_ := next(pieces, None)) is not None:
                if piece_.index == index:
                    answer.add(piece_)
                else:
                    held[piece_.index].append(piece_)
            print(flush=True)


class _Answer:
    """Prints one answer's pieces. It stands on a line of its own, so newlines at its beginning are left out.

    So is a mark before them: to a question without one, the model writes the mark first, and then answers.
    """

    def __init__(self) -> None:
        self.ended = False
        self._held: str | None = ""  # what has come while it may still be such a beginning; None when it no longer can

    def add(self, piece: Piece) -> None:
        self.ended = self.ended or piece.finish_reason is not None
        text = piece.text
        if self._held is not None:
            self._held += text
            if _MARK_ALONE.fullmatch(self._held) and not self.ended:
                return
            text, self._held = _BEGINNING.sub("", self._held), None
        if text:
            print(_printable(text), end="", flush=True)


def _printable(text: str) -> str:
    return printable(text) if sys.stdout.isatty() else text  # a pipe gets what was written


def _summary(streams: list[Stream], seconds: float) -> str:
    sequences = [sequence for stream in streams for sequence in stream.request.sequences]
    num_tokens = sum(len(sequence.draws) for sequence in sequences)
    num_cut = sum(sequence.finish_reason == "length" for sequence in sequences)
    tokens = "1 token" if num_tokens == 1 else f"{num_tokens} tokens"
    line = f"{tokens} in {seconds:.1f} s, {num_tokens / max(seconds, 1e-9):.0f} tokens/s"
    if num_cut:
        what = "the answer was" if len(sequences) == 1 else f"{num_cut} of {len(sequences)} answers were"
        line += f"; {what} cut off by --max-tokens"
    return line
