"""LLM: text in, text out; streams; what is refused; what failures and interruptions leave behind (nothing)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from minipaged_kernels import backends, reference

from minipaged import LLM, SamplingParams
from minipaged.parts import Parts
from minipaged.plan import StepPlan, StepResult

GREEDY = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


def test_answers_mirror_vllm(llm: LLM) -> None:
    outputs = llm.generate(["the cat", "请解释什么是黑洞"], SamplingParams(n=2, max_tokens=5, seed=1, logprobs=2))
    assert [output.prompt for output in outputs] == ["the cat", "请解释什么是黑洞"]
    for output in outputs:
        assert output.finished
        assert [completion.index for completion in output.outputs] == [0, 1]
        for completion in output.outputs:
            assert 1 <= len(completion.token_ids) <= 5
            assert completion.finish_reason in ("stop", "length")
            assert completion.logprobs is not None
            assert len(completion.logprobs) == len(completion.token_ids)
            assert completion.cumulative_logprob == pytest.approx(sum(draw.logprob for draw in completion.logprobs))
            assert completion.text == llm.tokenizer.decode(completion.token_ids)  # type: ignore[union-attr]


def test_prompts_as_text_and_as_token_ids_are_the_same(llm: LLM) -> None:
    token_ids = llm.tokenizer.encode("the cat sat")  # type: ignore[union-attr]
    asked = [llm.generate(prompt, GREEDY) for prompt in ("the cat sat", ["the cat sat"], token_ids, [token_ids])]
    assert all(len(outputs) == 1 for outputs in asked)
    assert len({outputs[0].outputs[0].token_ids for outputs in asked}) == 1
    assert llm.generate([]) == []


def test_params_for_each_prompt(llm: LLM) -> None:
    outputs = llm.generate(["a", "b"], [SamplingParams(max_tokens=1), SamplingParams(max_tokens=3, ignore_eos=True)])
    assert [len(output.outputs[0].token_ids) for output in outputs] == [1, 3]
    with pytest.raises(ValueError, match="2 prompts, 1 sampling params"):
        llm.generate(["a", "b"], [SamplingParams()])


def test_a_stream_steps_the_engine_for_all(llm: LLM) -> None:
    first = llm.stream("the cat", GREEDY)
    second = llm.stream("hello", GREEDY)
    pieces = list(first)
    assert sum(len(piece.token_ids) for piece in pieces) == 12
    assert len(second.request.sequences[0].draws) >= 11, "the second was written beside the first"
    assert sum(len(piece.token_ids) for piece in second) == 12
    alone = llm.generate("hello", GREEDY)[0].outputs[0]
    assert tuple(second.request.sequences[0].output_token_ids) == alone.token_ids


def test_closing_a_stream_cancels_its_request(llm: LLM) -> None:
    stream = llm.stream("the cat", GREEDY)
    next(stream)
    stream.close()
    assert stream.request.sequences[0].finish_reason == "cancelled"
    assert not llm.engine.has_work
    with llm.stream("the cat", GREEDY) as second:
        next(second)
    assert second.request.finished
    third = llm.stream("the cat", GREEDY)
    request = third.request
    del third
    assert request.finished, "letting it go is enough"


def test_an_answer_cancelled_from_outside_ends_its_stream(llm: LLM) -> None:
    stream = llm.stream("the cat", GREEDY)
    next(stream)
    llm.engine.cancel(stream.request)
    *_, last = list(stream)
    assert last.finish_reason == "cancelled"


def test_a_refused_prompt_leaves_nothing_behind(llm: LLM) -> None:
    with pytest.raises(ValueError, match="^prompt 1: the prompt is empty"):
        llm.generate(["the cat", "", "hello"], GREEDY)
    assert not llm.engine.has_work
    with pytest.raises(ValueError, match="^request 1 needs 200 token slots .* above the 96"):
        llm.generate("a", SamplingParams(max_tokens=200))
    with pytest.raises(ValueError, match="token id 5000"):
        llm.stream([5000])


def test_a_failed_forward_pass_is_told(llm: LLM) -> None:
    run = llm.engine.runner.run

    def fails(plan: StepPlan) -> StepResult:
        raise RuntimeError("out of luck")

    llm.engine.runner.run = fails  # type: ignore[method-assign]
    output = llm.generate("the cat", GREEDY)[0]
    assert output.outputs[0].finish_reason == "error"
    assert output.error == "RuntimeError: out of luck"
    llm.engine.runner.run = run  # type: ignore[method-assign]
    assert llm.generate("the cat", GREEDY)[0].outputs[0].finish_reason == "length"


def test_an_interruption_leaves_nothing_behind(llm: LLM) -> None:
    run = llm.engine.runner.run

    def interrupted(plan: StepPlan) -> StepResult:
        raise KeyboardInterrupt

    llm.engine.runner.run = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        llm.generate(["the cat", "hello"], GREEDY)
    assert not llm.engine.has_work
    llm.engine.runner.run = run  # type: ignore[method-assign]
    assert llm.generate("the cat", GREEDY)[0].finished


def test_a_folder_without_a_tokenizer(tiny_folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(tiny_folder / name)
    llm = LLM(tmp_path, num_blocks=8)
    with pytest.raises(ValueError, match="no tokenizer.json, so a text prompt"):
        llm.generate("the cat")
    with pytest.raises(ValueError, match="no tokenizer.json, so stop strings"):
        llm.generate([[1, 2]], SamplingParams(stop="x"))
    output = llm.generate([[1, 2, 3]], GREEDY)[0].outputs[0]
    assert (output.text, len(output.token_ids)) == ("", 12)


@pytest.mark.parametrize(
    ("prompts", "params", "message"),
    [
        (None, None, "prompts are a NoneType"),
        (b"abc", None, "prompts are a bytes"),
        ({"prompt": "a"}, None, "prompts are a dict"),
        ("\ud800", None, "lone surrogate"),
        (["a", "\ud800"], GREEDY, "prompt 1: .*lone surrogate"),
        ("a", {"max_tokens": 5}, "sampling_params are a dict"),
        ("a", [None], "sampling_params has a NoneType"),
        ([["a"]], None, "token ids"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(llm: LLM, prompts: Any, params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        llm.generate(prompts, params)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_blocks": 10**12}, "of memory that are free"),
        ({"kv_cache_bytes": 10**18}, "of memory that are free"),
        ({"host_blocks": 10**12, "num_blocks": 4}, "of memory that are free"),
        ({"host_cache_bytes": 10, "num_blocks": 4}, "do not hold a block"),
        ({"device": "cpu:foo"}, "device is 'cpu:foo'"),
        ({"attention": "magic"}, "attention is 'magic'"),
        ({"num_bloks": 4}, "unknown option 'num_bloks'; known are block_size"),
        ({"kv_cache_bytes": 10}, "kv_cache_bytes 10 do not hold one block"),
        ({"device": "tpu"}, "device is 'tpu'"),
    ],
)
def test_options_are_refused(tiny_folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LLM(tiny_folder, **options)


def test_the_pool_is_sized_by_bytes_or_by_itself(tiny_folder: Path) -> None:
    by_bytes = LLM(tiny_folder, kv_cache_bytes=1_000_000, block_size=8)
    assert by_bytes.kv_cache.num_blocks == 1_000_000 // by_bytes.kv_cache.block_bytes
    by_itself = LLM(tiny_folder, block_size=8, max_sequences=4, max_batch_tokens=64)
    assert by_itself.kv_cache.num_blocks == 4 * 256 // 8
    assert "128 blocks of 8 token slots" in by_itself.description
    assert "room for 4 sequences of full context" in by_itself.description


def test_kernels_of_your_own_do_all_three(tiny_folder: Path, llm: LLM, tmp_path: Path) -> None:
    """Attention, writing, and the copy before answers part."""
    calls = tmp_path / "calls"
    text = f"from minipaged_kernels import reference\ncalls = open({str(calls)!r}, 'a', buffering=1)\n"
    for kernel in backends.KERNELS:
        text += f"def {kernel}(*given):\n    print('{kernel}', file=calls)\n    return reference.{kernel}(*given)\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    own = LLM(tiny_folder, block_size=4, num_blocks=64, parts=Parts(attention=backends.from_file(tmp_path / "mine.py")))
    assert "mine attention" in own.description
    assert (
        "reference attention"
        in LLM(tiny_folder, parts=Parts(attention=backends.choose("reference", "cpu"))).description
    )
    params = SamplingParams(n=2, max_tokens=8, seed=1, ignore_eos=True)
    prompt = list(range(5, 11))  # its second block is half full when the answers part
    found = own.generate(prompt, params)[0].outputs
    assert [answer.token_ids for answer in found] == [
        answer.token_ids for answer in llm.generate(prompt, params)[0].outputs
    ]
    assert set(calls.read_text().split()) == set(backends.KERNELS)


def test_kernels_of_your_own_without_a_copy(tiny_folder: Path) -> None:
    """A module, or an object, need not have `copy_blocks`; whoever else is chosen copies."""
    mine = SimpleNamespace(paged_attention=reference.paged_attention, write_kv=reference.write_kv)
    own = LLM(tiny_folder, block_size=4, num_blocks=64, parts=Parts(attention=mine))
    outputs = own.generate(list(range(5, 11)), SamplingParams(n=2, max_tokens=8, seed=1, ignore_eos=True))
    assert {answer.finish_reason for answer in outputs[0].outputs} == {"length"}


@pytest.mark.parametrize("wrong", ["my_kernels.py", 3, SimpleNamespace(paged_attention=reference.paged_attention)])
def test_kernels_that_are_none_are_refused_before_the_first_step(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^Parts: attention is .*, without \w+; it must be a Backend") as caught:
        Parts(attention=wrong)
    assert "\n" not in str(caught.value)
