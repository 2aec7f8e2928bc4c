"""Conformance 28, 29 and 31: answers of a real model depend on nothing but prompt, parameters and seed."""

from __future__ import annotations

import pytest
import torch
from minipaged_kernels import backends

from minipaged.model.gpt import GPT
from minipaged.model.packed_linear import available, pack_linears
from minipaged.sampling_params import SamplingParams
from tests.real_house import Listening, RealHouse, plain_answer, run_together
from tests.tiny_models import tiny_gpt

needs_cpu_path = pytest.mark.skipif(
    backends.unavailable("cpu", "cpu") is not None or not available(torch.float32),
    reason="the CPU path needs Numba and oneDNN's packed linear layers",
)


@pytest.fixture(scope="module")
def model() -> GPT:
    return tiny_gpt(seed=3, max_positions=64)


def test_28_a_seed_gives_one_answer_whoever_runs_beside_it(model) -> None:
    params = SamplingParams(n=3, seed=11, max_tokens=15)
    prompt = list(range(20))
    alone = RealHouse(model, 64, 8).run([prompt], [params])[0]
    answers = [sequence.output_token_ids for sequence in alone.sequences]
    assert len({tuple(answer) for answer in answers}) == 3, "its n answers differ from each other"

    crowd = [list(range(i, i + 30)) for i in range(5)] + [prompt] + [[9] * 40] * 3
    house = RealHouse(model, 14, 4, budget=24)
    requests = house.run(crowd, [SamplingParams(seed=i, max_tokens=10) for i in range(5)] + [params] * 4)
    assert sum(sequence.num_preemptions for request in requests for sequence in request.sequences) > 0
    assert [sequence.output_token_ids for sequence in requests[5].sequences] == answers


def test_29_log_probabilities_equal_one_full_forward_pass(model) -> None:
    house = RealHouse(model, 9, 4, budget=16)
    params = [SamplingParams(temperature=0.9, seed=i, logprobs=3, max_tokens=8) for i in range(4)]
    requests = house.run([[(i * 3 + j) % 50 for j in range(20)] for i in range(4)], params)
    assert sum(request.sequences[0].num_preemptions for request in requests) > 0
    for request in requests:
        (sequence,) = request.sequences
        oracle = plain_answer(model, request)
        assert len(sequence.draws) == len(sequence.output_token_ids) == 8
        for mine, right in zip(sequence.draws, oracle.draws, strict=True):
            assert mine.token_id == right.token_id
            assert mine.logprob == pytest.approx(right.logprob, abs=1e-4)
            assert [token for token, _ in mine.top_logprobs] == [token for token, _ in right.top_logprobs]
            assert [p for _, p in mine.top_logprobs] == pytest.approx([p for _, p in right.top_logprobs], abs=1e-4)


@pytest.mark.parametrize("host_blocks", [0, 20, 400])
def test_31_ten_sequences_in_a_third_of_the_blocks_they_need(host_blocks: int) -> None:
    """Conformance 31: preemptions must occur, and the logits are those of a roomy pool, bit for bit."""
    backend = backends.choose("cpu", "cpu")
    model = tiny_gpt(seed=5, max_positions=1024)
    pack_linears(model, own_kernel=True)
    jobs = [
        (
            [(i * 13 + j * (i + 2)) % 50 for j in range(40 + 90 * i)],
            SamplingParams(temperature=0, max_tokens=100),
            0,
            None,
        )
        for i in range(10)
    ]
    need = sum(-(-(len(prompt) + 99) // 16) for prompt, *_ in jobs)
    roomy = Listening(model, need, 16, attention=backend)
    run_together(roomy, jobs)
    squeezed = Listening(model, need // 3, 16, host_blocks=host_blocks, attention=backend)
    requests = run_together(squeezed, jobs)
    assert sum(request.sequences[0].num_preemptions for request in requests) > 0
    assert squeezed.logits.keys() == roomy.logits.keys()
    for place, row in squeezed.logits.items():
        assert torch.equal(row, roomy.logits[place]), place
