"""TorchRunner on plans made by hand: however sequences are cut into chunks and blocks, the plain loop's logits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from minipaged_kernels import reference

from minipaged.model.gpt import GPT, full_attention
from minipaged.model.kv_cache import KVCache
from minipaged.model.plain_loop import generate_plain
from minipaged.model.sampler import Sampler
from minipaged.plan import Chunk, CopyBlock, Poison, Sampling, StepPlan, SwapIn, SwapOut
from minipaged.runner import TorchRunner
from minipaged.sampling_params import SamplingParams
from tests.tiny_models import tiny_gpt

GREEDY = Sampling(temperature=0.0, top_k=None, top_p=1.0, num_top_logprobs=0, seed=0, index=0)
BLOCK_SIZE = 4


def nan_runner(model: GPT, num_blocks: int = 40, num_host_blocks: int = 0) -> tuple[TorchRunner, list[torch.Tensor]]:
    """A runner whose cache starts as NaN everywhere, and the list that its logits are put into."""
    cache = KVCache(model.config, num_blocks, BLOCK_SIZE, model.dtype, num_host_blocks=num_host_blocks)
    cache.blocks.fill_(float("nan"))
    seen: list[torch.Tensor] = []
    return TorchRunner(model, cache, Sampler(), on_logits=lambda plan, logits: seen.append(logits.clone())), seen


def plain_logits(model: GPT, tokens: list[int]) -> torch.Tensor:
    """(tokens, vocab)"""
    return model.logits(model(torch.tensor(tokens), torch.arange(len(tokens)), full_attention))


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)


MODELS = {"plain": tiny_gpt(), "shared KV heads": tiny_gpt(num_kv_heads=2), "one KV head": tiny_gpt(num_kv_heads=1)}


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
def test_any_cut_into_chunks_any_blocks_any_company(name: str, data) -> None:
    """Several sequences, each in chunks of its own; a step holds some of the next ones; NaN wherever no token is."""
    model = MODELS[name]
    runner, seen = nan_runner(model)
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=4), label="lengths")
    sequences = [[(7 * i + 3 * j + j * j) % 50 for j in range(length)] for i, length in enumerate(lengths)]
    shuffled = data.draw(st.permutations(range(40)), label="blocks")
    tables = [tuple(shuffled[10 * i : 10 * i + -(-length // BLOCK_SIZE)]) for i, length in enumerate(lengths)]
    done = [0] * len(sequences)
    expected = [plain_logits(model, tokens) for tokens in sequences]
    step = 0
    while any(done[i] < lengths[i] for i in range(len(sequences))):
        waiting = [i for i in range(len(sequences)) if done[i] < lengths[i]]
        chosen = data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True), label="chosen")
        chunks, rows = [], []
        for i in chosen:
            size = data.draw(st.integers(1, lengths[i] - done[i]), label="chunk")
            last = done[i] + size == lengths[i]
            covering = tables[i] if last else tables[i][: -(-(done[i] + size) // BLOCK_SIZE)]
            draws = data.draw(st.integers(0, 1), label="draws")
            chunks.append(Chunk(i, done[i], sequences[i][done[i] : done[i] + size], covering, draws, GREEDY))
            done[i] += size
            if draws:
                rows.append(expected[i][done[i] - 1])
        result = runner.run(StepPlan(step, chunks, []))
        assert [len(draws) for draws in result.draws] == [chunk.draws for chunk in chunks]
        if rows:
            close(seen[-1], torch.stack(rows))
        step += 1


def test_decoding_is_the_plain_loop() -> None:
    model = MODELS["plain"]
    params = SamplingParams(max_tokens=20, temperature=0.8, top_k=20, top_p=0.95, seed=9, logprobs=2, ignore_eos=True)
    plain = generate_plain(model, [1, 2, 3], params, index=1)
    runner, _ = nan_runner(model)
    sampling = Sampling(0.8, 20, 0.95, 2, 9, 1)
    table = tuple(range(30, 24, -1))
    tokens, start, draws = [1, 2, 3], 0, []
    for step in range(20):
        covering = table[: -(-len(tokens) // BLOCK_SIZE)]
        ((draw,),) = runner.run(StepPlan(step, [Chunk(0, start, tokens[start:], covering, 1, sampling)], [])).draws
        draws.append(draw)
        start = len(tokens)
        tokens.append(draw.token_id)
    assert [draw.token_id for draw in draws] == plain.token_ids
    close(torch.tensor([draw.logprob for draw in draws]), torch.tensor([draw.logprob for draw in plain.draws]))


def test_several_draws_from_one_row_are_those_of_the_sequences_that_part() -> None:
    """The prompt is computed once; draw i is the first token that sequence `index + i` would have drawn alone."""
    model = MODELS["plain"]
    runner, seen = nan_runner(model)
    sampling = Sampling(1.5, None, 1.0, 1, 4, 2)
    chunks = [
        Chunk(0, 0, [5, 6, 7, 8, 9], (3, 1), 3, sampling),
        Chunk(1, 0, [9], (0,), 0, sampling),
        Chunk(2, 0, [9, 8], (2,), 1, GREEDY),
    ]
    first, second, third = runner.run(StepPlan(0, chunks, [])).draws
    assert seen[0].shape == (2, 50)  # one row for each chunk that draws
    assert (len(first), second, len(third)) == (3, (), 1)
    params = SamplingParams(max_tokens=1, temperature=1.5, seed=4, logprobs=1)
    alone = [generate_plain(model, [5, 6, 7, 8, 9], params, index=index).token_ids[0] for index in (2, 3, 4)]
    assert [draw.token_id for draw in first] == alone
    assert len({draw.token_id for draw in first}) > 1


def test_memory_operations_come_first_and_a_plan_may_hold_nothing_else() -> None:
    """A prefix is computed, forked by a copy, swapped out and in; the old blocks are poisoned before they are read."""
    model = MODELS["plain"]
    runner, seen = nan_runner(model, num_host_blocks=2)
    tokens = list(range(10, 22))
    runner.run(StepPlan(0, [Chunk(0, 0, tokens[:8], (0, 1), 0, GREEDY)], []))
    moves = [CopyBlock(0, 5), SwapOut(1, 1), Poison(0), Poison(1), SwapIn(1, 9)]
    plan = StepPlan(1, [], moves)
    assert runner.run(plan).draws == []
    assert plan.num_executed_ops == 5
    runner.run(StepPlan(2, [Chunk(0, 8, tokens[8:], (6, 9, 7), 1, GREEDY)], [CopyBlock(5, 6), Poison(5)]))
    close(seen[-1][0], plain_logits(model, tokens)[-1])


def test_a_failing_step_says_how_many_operations_were_executed() -> None:
    runner, _ = nan_runner(MODELS["plain"], num_blocks=3)
    plan = StepPlan(0, [], [Poison(0), Poison(1), CopyBlock(0, 1), CopyBlock(0, 3)])
    with pytest.raises(IndexError):
        runner.run(plan)
    assert plan.num_executed_ops == 2

    def broken(*args, **kwargs) -> torch.Tensor:
        raise RuntimeError("the lights went out")

    runner.attention = SimpleNamespace(write_kv=reference.write_kv, paged_attention=broken)
    plan = StepPlan(1, [Chunk(0, 0, [1], (0,), 1, GREEDY)], [CopyBlock(0, 1)])
    with pytest.raises(RuntimeError, match="lights"):
        runner.run(plan)
    assert plan.num_executed_ops == 1


def test_nan_that_is_read_is_a_fault_and_not_a_token() -> None:
    runner, _ = nan_runner(MODELS["plain"])
    with pytest.raises(FloatingPointError):
        runner.run(StepPlan(0, [Chunk(0, 4, [1], (0, 1), 1, GREEDY)], []))  # block 0 was never written


def test_chunks_that_make_no_sense_are_refused() -> None:
    runner, _ = nan_runner(MODELS["plain"])
    with pytest.raises(ValueError, match="sequence 7 has 1 blocks of 4 slots for a context of 5 tokens"):
        runner.run(StepPlan(0, [Chunk(7, 4, [1], (0,), 1, GREEDY), Chunk(8, 0, [1], (1, 2), 1, GREEDY)], []))
    with pytest.raises(ValueError, match="sequence 7 has no tokens"):
        runner.run(StepPlan(0, [Chunk(7, 0, [], (0,), 1, GREEDY)], []))


def test_the_cache_may_be_narrower_than_the_model() -> None:
    model = MODELS["plain"]
    runner = TorchRunner(model, KVCache(model.config, 4, BLOCK_SIZE, torch.bfloat16))
    ((draw,),) = runner.run(StepPlan(0, [Chunk(0, 0, [1, 2, 3], (1,), 1, GREEDY)], [])).draws
    assert draw.logprob == pytest.approx(float(plain_logits(model, [1, 2, 3])[-1].log_softmax(-1).max()), abs=0.2)
