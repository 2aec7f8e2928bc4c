"""Loading a folder: what is accepted, and what is refused by name, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from minipaged.model.gpt import full_attention
from minipaged.model.loader import ASSETS, load_model, resolve_model
from tests.tiny_models import tiny_gpt

CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_head": 4, "n_embd": 24, "n_inner": 40, "vocab_size": 50,
          "n_positions": 64}  # fmt: skip
WEIGHTS = "model.safetensors"


def write(folder: Path, prefix: str = "transformer.", **changes: Any) -> dict[str, torch.Tensor]:
    """The tiny GPT as Hugging Face would save it; returns the tensors as saved."""
    tensors = {}
    for name, tensor in tiny_gpt(tie_word_embeddings=changes.get("tie_word_embeddings", True)).state_dict().items():
        turned = name.endswith("weight") and (".c_" in name)
        tensors[name if name == "lm_head.weight" else prefix + name] = (tensor.t() if turned else tensor).contiguous()
    if changes.get("tie_word_embeddings", True):
        del tensors["lm_head.weight"]
    save_file(tensors, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    return tensors


def hidden(model) -> torch.Tensor:
    return model.logits(model(torch.arange(20), torch.arange(20), full_attention))


def refusal(folder: Path, *parts: str) -> None:
    with pytest.raises(ValueError) as error:
        load_model(folder)
    assert "\n" not in str(error.value)
    for part in (*parts, str(folder)):
        assert part in str(error.value)


@pytest.mark.parametrize("prefix", ["transformer.", ""])
@pytest.mark.parametrize("tied", [True, False])
def test_round_trip(tmp_path: Path, prefix: str, tied: bool) -> None:
    write(tmp_path, prefix, tie_word_embeddings=tied)
    config, model = load_model(tmp_path)
    original = tiny_gpt(tie_word_embeddings=tied)
    assert torch.equal(hidden(model), hidden(original))
    assert (config.hidden_size, config.head_dim, config.max_positions) == (24, 6, 64)
    assert (model.lm_head.weight is model.wte.weight) == tied
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not model.training


def test_dtypes(tmp_path: Path) -> None:
    tensors = write(tmp_path)
    save_file({name: tensor.half() for name, tensor in tensors.items()}, tmp_path / WEIGHTS)
    for dtype in ("float32", "bfloat16", "float16", torch.float64):
        _, model = load_model(tmp_path, dtype=dtype)
        expected = dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype)
        assert {parameter.dtype for parameter in model.parameters()} == {expected}
    with pytest.raises(ValueError, match="dtype is 'int8'"):
        load_model(tmp_path, dtype="int8")


def test_causal_masks_of_old_checkpoints_are_passed_over(tmp_path: Path) -> None:
    tensors = write(tmp_path, prefix="")
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 64, 64).tril()
    tensors["h.1.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, tmp_path / WEIGHTS)
    assert torch.equal(hidden(load_model(tmp_path)[1]), hidden(tiny_gpt()))


def test_a_tied_head_may_be_stored_but_not_differ(tmp_path: Path) -> None:
    tensors = write(tmp_path)
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, tmp_path / WEIGHTS)
    assert torch.equal(hidden(load_model(tmp_path)[1]), hidden(tiny_gpt()))
    tensors["lm_head.weight"] = tensors["lm_head.weight"] + 1
    save_file(tensors, tmp_path / WEIGHTS)
    refusal(tmp_path, "lm_head.weight", "differs from wte.weight")


def test_missing_extra_misshapen_doubled_and_integer_tensors(tmp_path: Path) -> None:
    tensors = write(tmp_path)

    def saved(**changes: torch.Tensor | None) -> None:
        changed = {name: tensor for name, tensor in {**tensors, **changes}.items() if tensor is not None}
        save_file(changed, tmp_path / WEIGHTS)

    saved(**{"transformer.h.1.ln_2.bias": None})
    refusal(tmp_path, "h.1.ln_2.bias", "is missing")
    saved(**{"transformer.h.2.ln_2.bias": torch.zeros(24)})
    refusal(tmp_path, "transformer.h.2.ln_2.bias", "not part of a GPT-2 with 2 layers")
    saved(**{"transformer.h.0.mlp.c_fc.weight": torch.zeros(40, 24)})
    refusal(tmp_path, "transformer.h.0.mlp.c_fc.weight", "(40, 24)", "(24, 40)")
    saved(**{"ln_f.bias": torch.zeros(24)})
    refusal(tmp_path, "ln_f.bias", "twice")
    saved(**{"transformer.ln_f.bias": torch.zeros(24, dtype=torch.int8)})
    refusal(tmp_path, "transformer.ln_f.bias", "torch.int8")


def test_an_untied_head_must_be_there(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"tie_word_embeddings": False}))
    refusal(tmp_path, "lm_head.weight", "is missing")


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    refusal(tmp_path / "nowhere", "no such folder")
    refusal(tmp_path, "config.json", "no such file")
    tensors = write(tmp_path)
    for content in (b"{", b"\xff\xfe", b"[1]"):
        (tmp_path / "config.json").write_bytes(content)
        refusal(tmp_path, "config.json")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"n_head": 5}))
    refusal(tmp_path, "config.json", "n_embd 24 is not a multiple of n_head 5")
    bad = {"layer_norm_epsilon": "1e-5", "tie_word_embeddings": 1, "eos_token_id": "x", "n_layer": 2.0}
    for key, value in bad.items():
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | {key: value}))
        refusal(tmp_path, repr(value))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))

    whole = (tmp_path / WEIGHTS).read_bytes()
    for content in (b"", b"not safetensors", whole[: len(whole) // 2]):
        (tmp_path / WEIGHTS).write_bytes(content)
        refusal(tmp_path, WEIGHTS, "not a readable safetensors file")
    (tmp_path / WEIGHTS).unlink()
    refusal(tmp_path, WEIGHTS, "no such file")

    save_file(tensors, tmp_path / "a.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    for weight_map, part in (
        (None, "weight_map"),
        ({"wte.weight": 3}, "weight_map"),
        ({"wte.weight": "../a.safetensors"}, "plain file name"),
        ({"wte.weight": "b.safetensors"}, "b.safetensors"),
    ):
        index.write_text(json.dumps({"weight_map": weight_map}))
        refusal(tmp_path, part)
    index.write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "a.safetensors")}))
    assert torch.equal(hidden(load_model(tmp_path)[1]), hidden(tiny_gpt()))
    assert set(load_file(tmp_path / "a.safetensors")) == set(tensors)


def test_resolve_model(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path)) == tmp_path
    assert resolve_model(tmp_path) == tmp_path
    with pytest.raises(ValueError, match="'no-such-model' is neither a folder nor shipped"):
        resolve_model("no-such-model")
    if (ASSETS / "tiny-gpt").is_dir():
        assert resolve_model("tiny-gpt") == ASSETS / "tiny-gpt"
