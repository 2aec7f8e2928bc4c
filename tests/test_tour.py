"""A tour of minipaged, from the public door down to the books. Read it from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

from minipaged import LLM, SamplingParams
from minipaged.trace import StepRecord


@pytest.fixture
def llm(tiny_folder: Path) -> LLM:
    """A random model of a few thousand weights, and a pool of 12 blocks of 4 token slots."""
    return LLM(tiny_folder, num_blocks=12, block_size=4, host_blocks=6, seed=1)


def test_prompts_in_texts_out(llm: LLM) -> None:
    outputs = llm.generate(["the cat sat", "请解释什么是黑洞"], SamplingParams(max_tokens=6, temperature=0.8))
    for output in outputs:
        (answer,) = output.outputs
        assert answer.finish_reason in ("stop", "length")
        assert len(answer.token_ids) <= 6


def test_several_answers_share_the_prompt(llm: LLM) -> None:
    """n = 3: the prompt is computed once; the answers part by copy-on-write."""
    params = SamplingParams(n=3, max_tokens=5, seed=7, ignore_eos=True)
    prompt = list(range(5, 15))  # two full blocks, and a third that each answer must have to itself
    (output,) = llm.generate(prompt, params)
    answers = [answer.token_ids for answer in output.outputs]
    assert len(set(answers)) == 3
    assert llm.engine.scheduler.memory.stats().copies == 2  # type: ignore[attr-defined]
    (again,) = llm.generate(prompt, params)
    assert [answer.token_ids for answer in again.outputs] == answers, "a seed is a promise"


def test_a_stream_gives_pieces_and_may_be_left(llm: LLM) -> None:
    with llm.stream("hello", SamplingParams(max_tokens=30, ignore_eos=True)) as stream:
        for number, piece in enumerate(stream):
            assert str(piece) == piece.text
            if number == 3:
                break
    assert stream.request.sequences[0].finish_reason == "cancelled"


def test_steps_can_be_watched(llm: LLM) -> None:
    """Every step leaves a record: what was computed, who came and went and why, how full the pool is."""
    records: list[StepRecord] = []
    llm.engine.listeners.append(records.append)
    llm.generate(["the cat sat on the mat and the hat"] * 2 + ["hello"] * 4, SamplingParams(max_tokens=12))
    assert records[0].chunks[0].kind == "prefill"
    assert {event.kind for record in records for event in record.events} >= {"admit", "finish"}
    assert all(record.live_slots <= record.held_slots <= record.total_slots == 48 for record in records)
    assert records[-1].num_running == records[-1].num_waiting == 0


def test_a_pool_too_small_for_all_serves_all(llm: LLM) -> None:
    """Sequences are preempted, swapped out, resumed; the answers are those of a roomy pool."""
    prompts = [[(3 * i + j) % 200 + 1 for j in range(20)] for i in range(6)]
    params = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
    squeezed = llm.generate(prompts, params)
    memory = llm.engine.scheduler.memory
    assert memory.stats().swaps_out > 0  # type: ignore[attr-defined]
    memory.check()  # type: ignore[attr-defined]
    alone = [llm.generate([prompt], params)[0] for prompt in prompts]
    assert [output.outputs[0].token_ids for output in squeezed] == [output.outputs[0].token_ids for output in alone]


def test_bad_input_is_one_line_and_changes_nothing(llm: LLM) -> None:
    for prompt, params in (("", SamplingParams()), ("hello", SamplingParams(max_tokens=500)), ([10**6], None)):
        with pytest.raises(ValueError) as refusal:
            llm.generate([prompt], params)  # type: ignore[list-item]
        assert "\n" not in str(refusal.value)
    assert not llm.engine.has_work
