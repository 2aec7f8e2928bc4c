"""The network against Hugging Face's own, and the plain loop's endings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from minipaged.model.gpt import full_attention
from minipaged.model.loader import load_model
from minipaged.model.plain_loop import generate_plain
from minipaged.sampling_params import SamplingParams
from tests.tiny_models import tiny_gpt

transformers = pytest.importorskip("transformers")

SHAPES = {
    "plain": {"n_layer": 2, "n_head": 4, "n_embd": 32},
    "odd head_dim": {"n_layer": 3, "n_head": 3, "n_embd": 21, "n_inner": 50},
    "untied": {"n_layer": 1, "n_head": 2, "n_embd": 32, "tie_word_embeddings": False},
    "relu": {"n_layer": 2, "n_head": 1, "n_embd": 16, "activation_function": "relu"},
    "gelu": {"n_layer": 2, "n_head": 2, "n_embd": 16, "activation_function": "gelu", "layer_norm_epsilon": 1e-3},
    "tanh gelu by its other name": {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "activation_function": "gelu_pytorch_tanh",
    },
}


def save_random(folder: Path, *, max_shard_size: str = "1GB", seed: int = 0, **changes):
    """A Hugging Face GPT-2 with weights wide enough that a misplaced one shows, saved as it saves itself."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 97, "n_positions": 48, "bos_token_id": 1, "eos_token_id": 96} | changes
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.normal_(0.0, 0.2)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return model


@pytest.mark.parametrize("max_shard_size", ["1GB", "20KB"])
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_hugging_faces(tmp_path: Path, shape: str, max_shard_size: str) -> None:
    theirs = save_random(tmp_path, max_shard_size=max_shard_size, **SHAPES[shape])
    assert (tmp_path / "model.safetensors.index.json").exists() == (max_shard_size == "20KB")
    config, ours = load_model(tmp_path)
    assert config.eos_token_ids == (96,)
    token_ids = torch.randint(0, 97, (48,))
    with torch.inference_mode():
        expected = theirs(token_ids[None]).logits[0]  # (tokens, vocab)
        got = ours.logits(ours(token_ids, torch.arange(48), full_attention))  # (tokens, vocab)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)


def test_greedy_answer_is_hugging_faces(tmp_path: Path) -> None:
    theirs = save_random(tmp_path, **SHAPES["plain"])
    _, ours = load_model(tmp_path)
    prompt = [5, 6, 7]
    answer = generate_plain(ours, prompt, SamplingParams(temperature=0, max_tokens=20, ignore_eos=True))
    expected = theirs.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=20, min_new_tokens=20)
    if 96 not in answer.token_ids:  # its generate() cannot go on after the end-of-text token
        assert answer.token_ids == expected[0, len(prompt) :].tolist()
    assert min(answer.margins) > 1e-4
    assert answer.num_tokens_computed == sum(range(3, 23))


def test_shared_kv_heads_are_the_same_as_repeated_ones() -> None:
    """A GPT with 4 query and 2 KV heads equals one with 4 KV heads whose weights are copies."""
    shared, repeated = tiny_gpt(num_kv_heads=2), tiny_gpt()
    state = shared.state_dict()
    for name in [name for name in state if "c_attn" in name]:
        query, key, value = state[name].split([24, 12, 12])
        key, value = (
            part.unflatten(0, (2, 6)).repeat_interleave(2, dim=0).flatten(0, 1) for part in (key, value)
        )  # each (4 * 6, …)
        state[name] = torch.cat([query, key, value])
    repeated.load_state_dict(state)
    token_ids, positions = torch.arange(20), torch.arange(20)
    torch.testing.assert_close(
        shared(token_ids, positions, full_attention), repeated(token_ids, positions, full_attention)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near(dtype: torch.dtype) -> None:
    wide, narrow = tiny_gpt(dtype=dtype).float(), tiny_gpt(dtype=dtype)
    token_ids, positions = torch.arange(20), torch.arange(20)
    hidden = narrow(token_ids, positions, full_attention)
    assert hidden.dtype == dtype and narrow.logits(hidden).dtype == torch.float32
    torch.testing.assert_close(hidden.float(), wide(token_ids, positions, full_attention), rtol=0, atol=0.1)


def test_plain_loop_endings() -> None:
    model = tiny_gpt(eos_token_ids=(0,))
    free = generate_plain(model, [1, 2], SamplingParams(max_tokens=8, seed=1, ignore_eos=True, logprobs=3))
    assert (len(free.draws), free.finish_reason) == (8, "length")
    assert all(len(draw.top_logprobs) == 3 for draw in free.draws)
    third = free.token_ids[2]
    stopped = generate_plain(
        model, [1, 2], SamplingParams(max_tokens=8, seed=1, ignore_eos=True, stop_token_ids=(third,))
    )
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(third) + 1]
    assert stopped.finish_reason == "stop"
    assert (
        generate_plain(model, [1, 2], SamplingParams(max_tokens=8, ignore_eos=True), seed=1).token_ids == free.token_ids
    )
    other = generate_plain(model, [1, 2], SamplingParams(max_tokens=8, seed=1, ignore_eos=True), index=1)
    assert other.token_ids != free.token_ids


def test_plain_loop_refusals() -> None:
    model = tiny_gpt()
    with pytest.raises(ValueError, match="empty"):
        generate_plain(model, [], SamplingParams())
    generate_plain(model, [1] * 63, SamplingParams(max_tokens=2))  # 64 positions: the last token is never fed back
    with pytest.raises(ValueError, match="need 65 positions; the model has 64"):
        generate_plain(model, [1] * 63, SamplingParams(max_tokens=3))
