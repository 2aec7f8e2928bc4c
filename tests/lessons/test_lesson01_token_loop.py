"""Lesson 1: the naive loop and the real one write the same; what is reckoned of a step is what torch counts."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lessons.lesson01_token_loop import experiment, solution
from lessons.lesson01_token_loop.machine import Machine
from lessons.lesson01_token_loop.one_step import OneStep, count, shape_only
from lessons.lesson01_token_loop.picture import step_picture
from lessons.lesson01_token_loop.recompute_loop import AllRows
from lessons.lesson01_token_loop.shape import GPT2_124M, head_weights, layer_weights
from lessons.lesson01_token_loop.token_loop import LastRow
from minipaged.cli.random_checkpoint import SIZES
from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT, full_attention
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.plain_loop import generate_plain
from minipaged.model.tokenizer import Tokenizer
from minipaged.sampling_params import SamplingParams
from minipaged.viz.theme import Theme

TINY = resolve_model("tiny-gpt")


@pytest.fixture(scope="module")
def tiny() -> GPT:
    return load_model(TINY)[1]


@pytest.fixture(scope="module")
def figures() -> experiment.Figures:
    writing = experiment.write(solution, small=True, device="cpu")
    return experiment.measure(solution, writing, small=True, device="cpu")


@pytest.mark.parametrize("prompt", ["Tell me about the brain.", "请解释什么是黑洞。"])
def test_both_loops_write_what_the_oracle_writes(tiny: GPT, prompt: str) -> None:
    tokenizer = Tokenizer.from_folder(TINY)
    assert tokenizer is not None
    token_ids, (eos,) = tokenizer.encode(prompt), tiny.config.eos_token_ids
    oracle = generate_plain(tiny, token_ids, SamplingParams(temperature=0, max_tokens=200))
    assert oracle.finish_reason == "stop" and oracle.token_ids[-1] == eos
    assert min(oracle.margins) > 1e-3  # so that no rounding can part them
    for next_logits in (AllRows(tiny), LastRow(tiny)):
        assert solution.generate(next_logits, token_ids, 200, eos) == oracle.token_ids
        assert next_logits.work.passes == len(oracle.token_ids)
        assert next_logits.work.rows == oracle.num_tokens_computed


def test_what_a_loop_says_that_it_did_is_what_torch_counts(tiny: GPT) -> None:
    for next_logits in (AllRows(tiny), LastRow(tiny)):
        with FlopCounterMode(display=False) as counter:
            solution.generate(next_logits, [5, 6, 7], 5, None)
        assert next_logits.work.flops == counter.get_total_flops()
        assert next_logits.work.rows == 3 + 4 + 5 + 6 + 7
    assert next_logits.work.logit_rows == next_logits.work.passes == 5


def test_flops_are_exactly_those_that_torch_counts() -> None:
    for heads, kv_heads, (new, context) in product((4, 6), (1, 2), ((1, 2), (1, 9), (9, 9))):
        # (With a context of 1 torch makes no matrix product of the values, and counts none.)
        config = ModelConfig(50, 64, 3, heads, kv_heads, 5, 12, 31)
        assert count(OneStep(shape_only(config), new, context)).flops == solution.step_flops(config, new, context)


def test_all_that_the_formula_leaves_out_are_biases_norms_and_embedding_rows() -> None:
    config = ModelConfig(50, 64, 3, 4, 2, 5, 12, 31)
    model = shape_only(config)
    matrices = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Linear)}
    embeddings = {id(model.wte.weight), id(model.wpe.weight)}
    small = sum(p.nbytes for p in model.parameters() if id(p) not in matrices | embeddings)
    for new, context in ((1, 1), (1, 9), (9, 9)):
        counted = count(OneStep(model, new, context))
        embedding_rows = 2 * new * config.hidden_size * 4
        assert counted.num_bytes == solution.step_bytes(config, new, context, 4) + small + embedding_rows


def test_a_step_computes_what_the_model_would() -> None:
    """Given the real K and V of the earlier tokens, a decode makes the logits of the whole sequence at once."""
    torch.manual_seed(0)
    model = GPT(ModelConfig(50, 64, 2, 4, 2, 4, 16, 32))
    kept = []

    def keep(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        kept.append(torch.stack([key[:-1], value[:-1]]))
        return full_attention(layer, query, key, value)

    token_ids = torch.tensor([3, 1, 4, 1, 0])  # a step's own token is 0
    expected = model.logits(model(token_ids, torch.arange(5), keep)[-1:])
    step = OneStep(model, 1, 5)
    step.earlier = torch.stack(kept)
    torch.testing.assert_close(step.run(), expected)


def test_a_step_is_a_whole_prompt_or_one_token() -> None:
    with pytest.raises(ValueError, match="OneStep: 2 new tokens of 5"):
        OneStep(shape_only(GPT2_124M), 2, 5)


def test_the_shapes_are_those_of_the_models(tiny: GPT) -> None:
    size = SIZES["124M"]
    assert GPT2_124M.num_layers * layer_weights(GPT2_124M) == size.matrix_parameters
    assert head_weights(GPT2_124M) == size.head_parameters
    assert sum(p.numel() for p in shape_only(GPT2_124M).parameters()) == size.parameters
    matrices = [module.weight.numel() for module in tiny.modules() if isinstance(module, torch.nn.Linear)]
    assert sum(matrices) == tiny.config.num_layers * layer_weights(tiny.config) + head_weights(tiny.config)


def test_the_figures_hold_on_any_machine(figures: experiment.Figures) -> None:
    naive, real = figures.writing.loops
    assert naive.token_ids == real.token_ids and len(naive.token_ids) == 24
    assert naive.rows == naive.logit_rows == real.rows == 24 * 6 + 24 * 23 // 2
    assert real.logit_rows == real.passes == 24
    assert figures.writing.cached_flops < real.flops / 5 < naive.flops / 5
    by_name = {(step.model, step.name): step for step in figures.steps}
    for step in figures.steps:
        assert step.predicted_flops == step.counted_flops
        assert step.predicted_bytes < step.counted_bytes < 1.03 * step.predicted_bytes
    for model in ("tiny-gpt", "124 M"):
        prefill, decode = by_name[model, "prefill"], by_name[model, "decode"]
        # A hundred times the rows: nearly as many times the arithmetic, and nearly the same bytes.
        assert prefill.counted_flops > 65 * decode.counted_flops
        assert prefill.counted_bytes < 1.15 * decode.counted_bytes
        assert decode.counted_flops < decode.counted_bytes < prefill.counted_flops
    assert by_name["124 M", "decode"].seconds is None  # --small does not run it
    one, eight, many = figures.batches
    assert many.flops == 64 * one.flops and many.num_bytes < 2 * one.num_bytes
    assert eight.num_bytes - one.num_bytes == 7 * 102 * GPT2_124M.kv_bytes_per_token(4)


def test_which_limit_a_step_meets_depends_on_the_machine() -> None:
    assert Machine(flops_per_second=100.0, bytes_per_second=10.0).limit(flops=1000, num_bytes=99) == "arithmetic"
    assert Machine(flops_per_second=100.0, bytes_per_second=10.0).limit(flops=1000, num_bytes=101) == "memory"


def test_the_picture_fits_and_needs_no_unicode(figures: experiment.Figures) -> None:
    picture = step_picture([s for s in figures.steps if s.model == "124 M"], Theme(unicode=False, colors="none"))
    assert picture.plain.isascii()
    assert max(len(line) for line in picture.plain.splitlines()) <= 80
    assert picture.lines[1].plain.count("#") > 1.9 * picture.lines[2].plain.count("#")
