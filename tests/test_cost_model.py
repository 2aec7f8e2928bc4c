"""What a step costs, worked out by hand on a machine with round numbers; and whether the presets are what they cite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minipaged.cost_model import GPT2_124M, LLAMA_8B, OPT_13B, PRESETS, CostModel, Machine, Network, preset
from minipaged.plan import Chunk, CopyBlock, MemoryOp, Poison, Sampling, StepPlan, SwapIn, SwapOut

MACHINE = Machine("slow", 1000.0, 400.0, 0.5, 0.25, 50.0, 0.25, 2.0, "by hand")  # 500 FLOP/s, 100 bytes/s
NETWORK = Network("small", 1000, 100, 5, 10, 600, 1000, 64, "by hand")
SAMPLING = Sampling(0.0, None, 1.0, 0, 0, 0)


def plan(*chunks: tuple[int, int, int], ops: tuple[MemoryOp, ...] = ()) -> StepPlan:
    """Of (start, tokens, draws)."""
    return StepPlan(0, [Chunk(i, start, [1] * n, (), draws, SAMPLING) for i, (start, n, draws) in enumerate(chunks)],
                    list(ops))  # fmt: skip


def test_a_step_by_hand() -> None:
    cost = CostModel(MACHINE, NETWORK).cost(plan((3, 2, 0), (7, 1, 1)), block_size=4)
    assert cost.fixed == 2.0
    assert cost.matrices_computing == pytest.approx((3 * 2 * 1000 + 1 * 2 * 100) / 500)  # three tokens, one drawn from
    assert cost.matrices_reading == pytest.approx(600 / 100)
    pairs = (4 + 5) + 8  # the two tokens of the first see 4 and 5 keys, the other's token sees 8
    assert cost.attention_computing == pytest.approx(pairs * 4 * 5 / 500)
    assert cost.attention_reading == pytest.approx(((5 + 8) + 3) * 10 / 100)  # both contexts read, three tokens written
    assert cost.moving == 0
    assert cost.seconds == pytest.approx(2.0 + 12.4 + 1.6)  # the matrices' arithmetic, the attention's reading


def test_n_answers_draw_from_one_row() -> None:
    model = CostModel(MACHINE, NETWORK)
    assert model.cost(plan((0, 4, 3)), 4) == model.cost(plan((0, 4, 1)), 4)


def test_blocks_that_move_by_hand() -> None:
    ops = (SwapOut(0, 1), SwapIn(1, 2), CopyBlock(2, 3), Poison(4))
    cost = CostModel(MACHINE, NETWORK).cost(plan(ops=ops), block_size=4)
    block_bytes = 4 * 10
    assert cost.moving == pytest.approx(2 * (0.25 + block_bytes / 50) + (0.25 + 2 * block_bytes / 100))
    assert cost.seconds == cost.moving, "a step that computes nothing is not launched"


def test_chunks_of_a_prompt_compute_as_many_pairs_as_the_whole() -> None:
    model = CostModel(MACHINE, NETWORK)
    whole = model.cost(plan((0, 12, 1)), 4)
    parts = [model.cost(plan((0, 5, 0)), 4), model.cost(plan((5, 4, 0)), 4), model.cost(plan((9, 3, 1)), 4)]
    assert sum(part.attention_computing for part in parts) == pytest.approx(whole.attention_computing)
    assert sum(part.matrices_computing for part in parts) == pytest.approx(whole.matrices_computing)
    assert sum(part.matrices_reading for part in parts) == pytest.approx(3 * whole.matrices_reading)
    assert sum(part.attention_reading for part in parts) > whole.attention_reading, "the beginning is read again"


@pytest.mark.parametrize("name", PRESETS)
def test_decodes_wait_for_the_weights_and_prefills_for_the_arithmetic(name: str) -> None:
    model = preset(name)
    one, many = model.cost(plan((100, 1, 1)), 16), model.cost(plan(*[(100, 1, 1)] * 8), 16)
    prompt = model.cost(plan((0, 512, 1)), 16)
    assert one.matrices_reading > one.matrices_computing
    assert prompt.matrices_computing > prompt.matrices_reading
    assert many.seconds < 2 * one.seconds, "eight decodes read the weights once"
    assert "\n" in model.machine.source and "\n" in model.network.source


def test_the_presets_are_what_they_cite() -> None:
    assert OPT_13B.kv_bytes_per_token == 800 * 1024
    assert round(OPT_13B.kv_slots, -2) == 15_700  # the paper's table 1 says 15.7K
    assert OPT_13B.weight_bytes == pytest.approx(26e9, rel=0.02)  # and 26 GB
    embeddings = LLAMA_8B.head_parameters  # of the same shape as the head
    assert LLAMA_8B.matrix_parameters + LLAMA_8B.head_parameters + embeddings == pytest.approx(8.03e9, rel=0.001)
    assert LLAMA_8B.kv_bytes_per_token == 128 * 1024
    assert GPT2_124M.matrix_parameters + GPT2_124M.head_parameters == pytest.approx(124e6, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peak_flops": 0}, "peak_flops is 0; it must be above 0"),
        ({"memory_share": 1.5}, "memory_share is 1.5; it must be above 0 and at most 1"),
        ({"transfer_seconds": -1}, "transfer_seconds is -1; it must be at least 0"),
        ({"peak_bytes": float("nan")}, "peak_bytes is nan"),
    ],
)
def test_impossible_machines_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(MACHINE, **change)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError, match="'abacus' is no preset; there are laptop-gpt2"):
        preset("abacus")
