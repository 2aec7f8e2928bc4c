"""Invariance: the logits of a request alone and in any company, bit for bit, and what it costs.

One request is served alone, among 1, 7 and 31 neighbours, at several budgets, and in a pool so small that it is
preempted and recomputed. On the CPU path (packed linear layers, Numba attention) all of its logits must be the same
bits. Then the same crowd is served by the ordinary way (`F.linear`, gather and softmax), whose logits differ, to see
what invariance costs or gains in tokens per second.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from minipaged.cli.random_checkpoint import SIZES, write_checkpoint
from minipaged.cli.recording import add_record_option, recording, require_writable

if TYPE_CHECKING:
    import torch

    from minipaged.llm import LLM

Logits = dict[int, "torch.Tensor"]  # position of the drawn token -> (vocab)

PROMPT_TOKENS = 150
ANSWER_TOKENS = 40
BLOCK_SIZE = 16
_CASES = (  # neighbours, budget, blocks (None: room for all; 43: it is admitted, and preempted once)
    (0, 64, None),
    (1, 2048, None),
    (7, 2048, None),
    (31, 2048, None),
    (7, 40, None),
    (31, 100, None),
    (7, 2048, 43),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--size, --dtype, --rounds, --record, --json."""
    parser.add_argument(
        "--size", choices=sorted(SIZES), default="12.6M",
        help="parameters of the random model (default 12.6M)",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32",
        help="of weights and cache (default float32)",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="of the measurement; the median counts (default 3)"
    )
    add_record_option(parser, "the last case, with its preemption,")
    parser.add_argument("--json", action="store_true", help="print the figures only")


def run(args: argparse.Namespace) -> int:
    """Compare, measure, print; 1 when the CPU path is not invariant."""
    if args.rounds < 1:
        raise ValueError(f"bench invariance: --rounds is {args.rounds}; it must be at least 1")
    require_writable(args.record)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = write_checkpoint(Path(folder) / "model", SIZES[args.size])
        alone, _ = _serve(_llm(checkpoint, args.dtype, 2048, None), SIZES[args.size].vocab_size, 0)
        rows = []
        for case in _CASES:
            neighbours, budget, blocks = case
            llm = _llm(checkpoint, args.dtype, budget, blocks)
            with recording(llm, args.record if case == _CASES[-1] else None):
                logits, preemptions = _serve(llm, SIZES[args.size].vocab_size, neighbours)
            different = sum(not logits[position].equal(row) for position, row in alone.items())
            rows.append(
                {
                    "neighbours": neighbours, "budget": budget, "blocks": llm.kv_cache.num_blocks,
                    "preemptions": preemptions, "rows": len(alone), "different": different,
                }
            )  # fmt: skip
        rates = _rates(checkpoint, args)
    figures = {"dtype": args.dtype, "size": args.size, "cases": rows, "tokens_per_second": rates}
    if args.json:
        print(json.dumps(figures))
    else:
        _print(figures)
    return int(any(row["different"] for row in rows))


def _print(figures: dict[str, Any]) -> None:
    console = Console()
    table = Table(title=f"One request's logits against those when it is alone, {figures['size']}, {figures['dtype']}")
    headings = ("neighbours", "budget", "blocks", "preemptions", "rows", "different")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in figures["cases"]:
        table.add_row(*(str(row[heading]) for heading in headings))
    console.print(table)
    invariant, ordinary = (figures["tokens_per_second"][way] for way in ("invariant", "ordinary"))
    console.print(
        f"32 requests: {invariant:.0f} tokens/s the invariant way, {ordinary:.0f} the ordinary way: "
        f"invariance {'gains' if invariant > ordinary else 'costs'} a factor of "
        f"{max(invariant, ordinary) / min(invariant, ordinary):.2f}."
    )


def _llm(checkpoint: Path, dtype: str, budget: int, num_blocks: int | None) -> LLM:
    from minipaged.llm import LLM

    return LLM(
        checkpoint, dtype=dtype, block_size=BLOCK_SIZE, num_blocks=num_blocks or 1000,
        max_batch_tokens=budget, max_sequences=min(32, budget), share_prefixes=False, attention="cpu",
    )  # fmt: skip


def _prompts(vocab_size: int, count: int) -> list[list[int]]:
    noise = random.Random(1)
    return [[noise.randrange(1, vocab_size) for _ in range(PROMPT_TOKENS - 3 * number)] for number in range(count)]


def _serve(llm: LLM, vocab_size: int, neighbours: int) -> tuple[Logits, int]:
    """The logits of the watched request, which is the youngest, and how often it was preempted."""
    from minipaged.runner import TorchRunner
    from minipaged.sampling_params import SamplingParams

    watched, *others = _prompts(vocab_size, 1 + neighbours)
    params = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS, ignore_eos=True)
    for prompt in others:
        llm.engine.add_request(prompt, params)
    sequence = llm.engine.add_request(watched, params).sequences[0]
    logits: Logits = {}

    def keep(plan: Any, rows: Any) -> None:
        for chunk, row in zip([chunk for chunk in plan.chunks if chunk.draws], rows, strict=True):
            if chunk.sequence == sequence.id:
                logits[chunk.start + len(chunk.token_ids)] = row.clone()

    assert isinstance(llm.engine.runner, TorchRunner)
    llm.engine.runner.on_logits = keep
    while llm.engine.has_work:
        llm.engine.step()
    return logits, sequence.num_preemptions


def _rates(checkpoint: Path, args: argparse.Namespace) -> dict[str, float]:
    """Tokens per second of 32 requests, both ways in turns."""
    from minipaged.llm import LLM
    from minipaged.model.loader import load_model
    from minipaged.runner import TorchRunner
    from minipaged.sampling_params import SamplingParams

    prompts = _prompts(SIZES[args.size].vocab_size, 32)
    params = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS, ignore_eos=True)
    options: dict[str, Any] = {"dtype": args.dtype, "num_blocks": 1000, "share_prefixes": False, "max_sequences": 32}
    invariant = LLM(checkpoint, attention="cpu", **options)
    ordinary = LLM(checkpoint, attention="reference", **options)
    _, plain_model = load_model(checkpoint, args.dtype)
    ordinary.engine.runner = TorchRunner(plain_model, ordinary.kv_cache)
    rates: dict[str, list[float]] = {"invariant": [], "ordinary": []}
    for _ in range(args.rounds):
        for way, llm in (("invariant", invariant), ("ordinary", ordinary)):
            began = time.perf_counter()
            llm.generate(prompts, params, progress=False)
            rates[way].append(32 * ANSWER_TOKENS / (time.perf_counter() - began))
    return {way: statistics.median(values) for way, values in rates.items()}
