"""Lesson 12, played: two requests that do not fit together, conversations that come back, a rush, and what it costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from lessons.lesson12_swap_manager import LESSON
from lessons.lesson12_swap_manager.cost_model import A100_PCIE3, A100_PCIE4
from lessons.lesson12_swap_manager.experiment import (
    BLOCK_SIZE,
    PAIR_ANSWER,
    PAIR_BLOCKS,
    PAIR_PROMPT,
    RUSH_BLOCK_SIZE,
    RUSH_BLOCKS,
    RUSH_BLOCKS_SMALL,
    TURN_BLOCKS,
    TURN_HOST_BLOCKS,
    TURN_PROMPT,
    TURNS,
    Figures,
    Outcome,
    pair,
    rush,
    turns,
)
from lessons.lesson12_swap_manager.first_in_first_out import FirstInFirstOut
from lessons.lesson12_swap_manager.pool_chart import pool_chart
from lessons.lesson12_swap_manager.small_engine import TOKEN_BYTES
from lessons.lesson12_swap_manager.this_machine import MachineCost, measure
from lessons.runner.stage import Stage, run
from minipaged.parts import Parts

HOST_BLOCKS = 2  # of the pair's middle case
ROOMY = 1000
BLOCK_SIZES = (1, 4, 16, 64, 256)
NUM_TOKENS = 256  # on this machine
MODEL_TOKENS = 1024  # in the cost model
COLUMNS = ["", "answered", "failed", "tokens lost", "computed again", "blocks out", "in", "KiB moved"]


def play(stage: Stage) -> Figures:
    """Both acts."""
    parts = stage.mine.parts()

    stage.act(1, "refuse")
    final = PAIR_PROMPT + PAIR_ANSWER - 1
    stage.say(
        f"{PAIR_BLOCKS} blocks of {BLOCK_SIZE} slots. A and B come together, each with {PAIR_PROMPT} tokens of prompt "
        f"and {PAIR_ANSWER} tokens to write. In the end each needs {final} slots, which is {-(-final // BLOCK_SIZE)} "
        "blocks. The server has no second chance to offer: whoever needs a block when there is none is refused."
    )
    refused = pair(parts, refuse=True)
    written = refused.tokens_lost - PAIR_PROMPT + 1
    stage.say(
        f"After {refused.tokens_lost} tokens each, both hold {PAIR_BLOCKS // 2} blocks, and all are full. "
        f"A asks first. [bold]A fails, after {written} of its {PAIR_ANSWER} tokens[/]; its user has read them already, "
        f"and the {refused.tokens_lost} tokens that were computed for it are lost. B gets A's blocks and ends well."
    )
    kept = PAIR_BLOCKS - (-(-final // BLOCK_SIZE))
    had = refused.tokens_lost // BLOCK_SIZE
    lost = had - kept
    again = stage.predict(
        "tokens of B computed again, without a host pool",
        lost * BLOCK_SIZE,
        "tokens",
        hint=f"Now nobody fails: the youngest, B, gives way with its {had} full blocks and comes back when A has "
        f"ended. What A does not take until then stays where it is. A comes to hold {-(-final // BLOCK_SIZE)} of the "
        f"{PAIR_BLOCKS} blocks. How many tokens of B must be computed a second time?",
    )
    with_host = stage.predict(
        f"tokens of B computed again, with a host pool of {HOST_BLOCKS} blocks",
        (lost - HOST_BLOCKS) * BLOCK_SIZE,
        "tokens",
        hint=f"What A takes from B is now copied to the host first, as far as its {HOST_BLOCKS} blocks go.",
    )
    moved = stage.predict("blocks moved in that case, out and in", lost + HOST_BLOCKS, "blocks")

    stage.act(2, "recompute, or move out and back")
    two = _pairs(parts)
    block_bytes = BLOCK_SIZE * TOKEN_BYTES
    stage.table(
        f"A and B, {PAIR_BLOCKS} blocks of {BLOCK_SIZE} slots, {block_bytes // 1024} KiB each",
        COLUMNS,
        [_row(name, outcome) for name, outcome in two.items()],
    )
    stage.say(
        f"Who goes when the host pool is full, too? Conversations come back, in the turns {' '.join(TURNS)}. Each has "
        f"{TURN_PROMPT} tokens: two full blocks, and a token that is always computed. The device has room for one of "
        f"them ({TURN_BLOCKS} blocks), the host for three ({TURN_HOST_BLOCKS}). After each turn, this lies where:"
    )
    told, by_arrival = turns(parts), turns(replace(parts, swap=FirstInFirstOut))
    stage.picture(pool_chart(stage.theme, told), "the two pools, turn by turn")
    stage.table(
        "The same turns, with another order in the host pool",
        ["goes first", "tokens computed", "blocks out", "in", "contents lost"],
        [
            (
                name,
                sum(turn.computed for turn in order),
                sum(turn.blocks_out for turn in order),
                sum(turn.blocks_in for turn in order),
                sum(turn.dropped for turn in order),
            )
            for name, order in (("the oldest", by_arrival), ("least recently used", told))
        ],
    )
    num_blocks = RUSH_BLOCKS_SMALL if stage.small else RUSH_BLOCKS
    roomy = rush(Parts(), stage.device, ROOMY, small=stage.small)
    hosts = (8,) if stage.small else (8, 24)
    crowd = {
        "refuse": rush(parts, stage.device, num_blocks, small=stage.small, refuse=True),
        "recompute": rush(parts, stage.device, num_blocks, small=stage.small),
        **{f"host pool of {n}": rush(parts, stage.device, num_blocks, small=stage.small, host_blocks=n) for n in hosts},
    }
    stage.table(
        f"And tiny-gpt: {roomy.answered} prompts at once, {num_blocks} blocks of {RUSH_BLOCK_SIZE}",
        COLUMNS,
        [_row(name, outcome) for name, outcome in crowd.items()],
    )
    is_right = _answers_agree(crowd, roomy)
    if stage.mine.answers:
        is_right = is_right and two == _pairs(Parts()) and told == turns(Parts())
    stage.say(_verdict(is_right, bool(stage.mine.answers)))
    machine = _costs(stage)
    stage.score(again, two["recompute"].tokens_recomputed)
    middle = two[f"host pool of {HOST_BLOCKS}"]
    stage.score(with_host, middle.tokens_recomputed)
    stage.score(moved, middle.blocks_out + middle.blocks_in)
    return Figures(
        pair=two,
        turns=told,
        turns_in_order_of_arrival=by_arrival,
        rush=crowd,
        crossing_per_layer=A100_PCIE3.crossing(per_layer=True),
        crossing_per_block=A100_PCIE3.crossing(per_layer=False),
        crossing_per_layer_pcie4=A100_PCIE4.crossing(per_layer=True),
        machine=machine,
        is_right=is_right,
    )


def _costs(stage: Stage) -> MachineCost:
    """Which of the two is quicker: by a formula for an A100, and measured here."""
    platform = A100_PCIE3
    stage.say(
        f"Which is quicker? First a formula, for a request of {MODEL_TOKENS} tokens of {platform.name}: "
        f"{platform.token_bytes // 1024} KiB a token, {platform.peak_share:.0%} of {platform.peak_flops / 1e12:.0f} "
        f"TFLOP/s, {platform.link_share:.0%} of {platform.link_bytes / 1e9:.2f} GB/s, "
        f"{platform.copy_seconds * 1e6:.0f} µs for each copy."
    )
    recompute = platform.recompute_seconds(MODEL_TOKENS)
    rows = []
    for block_size in BLOCK_SIZES:
        layers = platform.swap_seconds(block_size, MODEL_TOKENS, per_layer=True)
        whole = platform.swap_seconds(block_size, MODEL_TOKENS, per_layer=False)
        rows.append(
            (
                block_size,
                f"{1e3 * layers:.0f}",
                f"{1e3 * whole:.0f}",
                f"{1e3 * recompute:.0f}",
                f"{recompute / layers - 1:+.0%}",
                f"{recompute / whole - 1:+.0%}",
            )
        )
    stage.table(
        "By the formula: ms to move the request out and in; ms to compute it; what computing costs more",
        [
            "block size",
            f"{platform.pieces} copies a block",
            "1 copy a block",
            "computing",
            f"more than {platform.pieces} copies",
            "more than 1",
        ],
        rows,
        highlight=16,
    )
    stage.say(
        f"With a copy for each layer's K and V, moving overtakes computing at blocks of "
        f"{platform.crossing(per_layer=True):.0f}; over PCIe 4.0 at {A100_PCIE4.crossing(per_layer=True):.0f}. With a "
        f"block in one piece, as ours is, it is ahead from blocks of 1."
    )
    machine = measure(stage.small, stage.device, BLOCK_SIZES, NUM_TOKENS)
    stage.table(
        f"Measured here: {machine.num_tokens} tokens of {machine.model}, {machine.token_bytes // 1024} KiB each",
        ["block size", "out and in", "computing again", "computing ÷ moving"],
        [
            (n, f"{1e3 * seconds:.1f} ms", f"{1e3 * machine.recompute_seconds:.0f} ms",
             f"{machine.recompute_seconds / seconds:.0f}×")
            for n, seconds in machine.swap_seconds.items()
        ],
        highlight=16,
    )  # fmt: skip
    if min(machine.recompute_seconds / seconds for seconds in machine.swap_seconds.values()) > 1:
        stage.say("They never cross here: moving is ahead at every block size.")
    else:
        stage.say("They cross here: at some block size computing is ahead.")
    return machine


def _row(name: str, outcome: Outcome) -> tuple[object, ...]:
    return (
        name,
        outcome.answered,
        outcome.failed,
        outcome.tokens_lost,
        outcome.tokens_recomputed,
        outcome.blocks_out,
        outcome.blocks_in,
        f"{outcome.bytes_moved / 1024:,.0f}",
    )


def _answers_agree(crowd: dict[str, Outcome], roomy: Outcome) -> bool:
    return all(outcome.answers == {id: roomy.answers[id] for id in outcome.answers} for outcome in crowd.values())


def _pairs(parts: Parts) -> dict[str, Outcome]:
    """A and B in each of the ways."""
    return {
        "refuse": pair(parts, refuse=True),
        "recompute": pair(parts),
        **{f"host pool of {n}": pair(parts, n) for n in (HOST_BLOCKS, 4)},
    }


def _verdict(is_right: bool, is_mine: bool) -> str:
    if not is_right:
        return "[red]Some answers, or some counts, are not what they are with room for all.[/]"
    said = "Whoever was answered got the same tokens as with room for all."
    return f"{said} With your parts the counts are the same as with ours." if is_mine else said


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
