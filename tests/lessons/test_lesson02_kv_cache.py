"""Lesson 2: what is kept changes no token; what it saves and what it takes are what the formulas say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from lessons.lesson01_token_loop import solution as loop
from lessons.lesson01_token_loop.token_loop import LastRow
from lessons.lesson02_kv_cache import engine_part, experiment, solution
from lessons.lesson02_kv_cache.__main__ import WHOLE_ANSWER
from lessons.lesson02_kv_cache.contiguous_cache import CachedPass
from lessons.lesson02_kv_cache.picture import both_pictures
from lessons.runner.lesson import LESSONS
from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT, full_attention
from minipaged.model.plain_loop import generate_plain
from minipaged.sampling_params import SamplingParams
from minipaged.viz.theme import Theme


@pytest.fixture(scope="module")
def tiny() -> experiment.Tiny:
    return experiment.Tiny()


def random_gpt(seed: int, kv_heads: int = 2) -> GPT:
    torch.manual_seed(seed)
    return GPT(ModelConfig(50, 64, 3, 4, kv_heads, 6, 24, 40))


@pytest.mark.parametrize("cache_type", [solution.ContiguousCache, engine_part.ContiguousCache])
@pytest.mark.parametrize("prompt", ["Tell me about the brain.", "请解释什么是黑洞。"])
def test_the_answer_is_the_oracles(
    tiny: experiment.Tiny, prompt: str, cache_type: type[solution.ContiguousCache]
) -> None:
    token_ids, (eos,) = tiny.tokenizer.encode(prompt), tiny.config.eos_token_ids
    oracle = generate_plain(tiny.model, token_ids, SamplingParams(temperature=0, max_tokens=200))
    assert oracle.finish_reason == "stop" and min(oracle.margins) > 1e-3  # so that no rounding can part them
    # Exactly as many slots as are needed: the last token is never fed back.
    cache = cache_type(tiny.config, len(token_ids) + len(oracle.token_ids) - 1)
    cached = CachedPass(tiny.model, cache)
    assert loop.generate(cached, token_ids, 200, eos) == oracle.token_ids
    assert cached.work.rows == len(token_ids) + len(oracle.token_ids) - 1 == cache.num_computed
    assert cached.work.passes == len(oracle.token_ids)


def test_the_whole_answer_is_what_tiny_gpt_writes_before_eos(tiny: experiment.Tiny) -> None:
    (eos,) = tiny.config.eos_token_ids
    answer = generate_plain(tiny.model, tiny.prompt, SamplingParams(temperature=0, max_tokens=200)).token_ids
    assert answer[-1] == eos and len(answer) - 1 == WHOLE_ANSWER


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_logits_are_those_of_the_whole_sequence_however_it_is_cut(kv_heads: int) -> None:
    model = random_gpt(kv_heads, kv_heads)
    token_ids = torch.randint(50, (40,)).tolist()
    cached = CachedPass(model, solution.ContiguousCache(model.config, 45))
    cached.cache.kv.fill_(float("nan"))
    for end in (7, 8, 9, 20, 21, 40):
        torch.testing.assert_close(cached(token_ids[:end]), LastRow(model)(token_ids[:end]), atol=1e-5, rtol=1e-5)


def test_keys_and_values_of_earlier_tokens_do_not_change() -> None:
    """Why they may be kept at all: they are the same whatever comes behind them."""
    model = random_gpt(5)
    seen: list[torch.Tensor] = []

    def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        seen.append(torch.stack([key[:5], value[:5]]))
        return full_attention(layer, query, key, value)

    for tail in ([7, 8, 9], [30, 31, 32]):
        model(torch.tensor([1, 2, 3, 4, 5, *tail]), torch.arange(8), attend)
    for one, other in zip(seen[:3], seen[3:], strict=True):  # three layers each
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)

    def attend_to_all(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        seen.append(key[:5])
        k, v = (x.repeat_interleave(2, dim=1) for x in (key, value))
        return torch.einsum("hqk,khd->qhd", torch.einsum("qhd,khd->hqk", query, k).softmax(-1), v)

    # Without the mask they do: from the second layer on, a row has looked at what comes behind it.
    seen.clear()
    for tail in ([7, 8, 9], [30, 31, 32]):
        model(torch.tensor([1, 2, 3, 4, 5, *tail]), torch.arange(8), attend_to_all)
    assert torch.equal(seen[0], seen[3]) and not torch.allclose(seen[1], seen[4], atol=1e-3)


def test_a_pass_is_refused_that_has_nothing_new_or_no_room() -> None:
    model = random_gpt(0)
    cached = CachedPass(model, solution.ContiguousCache(model.config, 4))
    cached([1, 2, 3])
    with pytest.raises(ValueError, match="CachedPass: 3 tokens, of which 3 are in the cache"):
        cached([1, 2, 3])
    with pytest.raises(ValueError, match="fit into 4 slots"):
        cached([1, 2, 3, 4, 5])
    assert cached.cache.num_computed == 3
    cached([1, 2, 3, 4])


def test_tokens_computed_grow_with_the_square_and_with_the_length(tiny: experiment.Tiny) -> None:
    counts = {}
    for answer in (10, 20, 40):
        naive = experiment.write_naively(tiny.model, loop, tiny.prompt, answer)
        cached = experiment.write_cached(tiny.model, loop, solution, tiny.prompt, answer)
        assert naive.token_ids == cached.token_ids and len(naive.token_ids) == answer
        assert sum(naive.rows) == experiment.naive_rows(len(tiny.prompt), answer)
        assert sum(cached.rows) == experiment.cached_rows(len(tiny.prompt), answer)
        assert cached.rows == (len(tiny.prompt), *[1] * (answer - 1))
        assert naive.rows == tuple(range(len(tiny.prompt), len(tiny.prompt) + answer))
        assert naive.flops[0] == cached.flops[0] and naive.flops[-1] > 5 * cached.flops[-1]
        # A pass of one token is not quite constant: attention grows with the context.
        assert list(cached.flops[1:]) == sorted(set(cached.flops[1:]))
        counts[answer] = (sum(naive.rows), sum(cached.rows))
    assert experiment.naive_rows(9, 162) == sum(range(9, 171))
    assert counts[40][0] - 2 * counts[20][0] == 20**2  # the quadratic part: a² / 2 counted twice
    assert counts[40][1] - counts[20][1] == 20


def test_a_token_takes_what_the_formula_says(tiny: experiment.Tiny) -> None:
    sizes = {size.model: size for size in experiment.token_bytes(solution, tiny.config)}
    for size in sizes.values():
        assert size.by_formula == size.in_tensor
    assert sizes["tiny-gpt"].by_formula == 4096
    assert sizes["GPT-2, 124 M"].by_formula == 73_728
    assert sizes["OPT-13B"].by_formula == 800 * 1024
    assert sizes["Llama, ungrouped"].by_formula == 4 * sizes["Llama-3-8B"].by_formula
    for config, dtype in experiment.SHAPES.values():
        assert solution.kv_bytes_per_token(config, dtype.itemsize) == config.kv_bytes_per_token(dtype.itemsize)


def test_the_picture_shows_a_triangle_and_a_diagonal() -> None:
    picture = both_pictures((3, 4, 5), (3, 1, 1), 3, Theme(unicode=False, colors="none")).plain
    assert picture.isascii()
    rows = [line.split() for line in picture.splitlines()[1:4]]
    assert [row[1] for row in rows] == ["###", "%%%#", "%%%%#"]
    assert [row[4] for row in rows] == ["###", "...#", "....#"]
    assert picture.splitlines()[4].split() == ["sum", "12", "sum", "5"]


def test_a_terminal_without_unicode_sees_it_to_the_end() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "80"}
    command = [sys.executable, "-m", "lessons.lesson02_kv_cache", "--small"]
    done = subprocess.run(command, cwd=LESSONS.parent, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "sum                      174       sum                       20" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 90
