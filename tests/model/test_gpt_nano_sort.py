"""A trained network from elsewhere: minGPT's gpt-nano that sorts digits, with every intermediate of a forward pass."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from minipaged.model.gpt import full_attention
from minipaged.model.loader import load_model
from minipaged.model.plain_loop import generate_plain
from minipaged.sampling_params import SamplingParams

SHARED = Path(os.environ.get("MINIPAGED_SHARED", Path(__file__).parents[2].parent / "shared"))
FOLDER = SHARED / "goldens" / "gpt-nano-sort"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the goldens are not here; MINIPAGED_SHARED says where")


def intermediates(model, token_ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Every named value of one forward pass over one sequence; those inside a layer are of the first one."""
    seen: dict[str, torch.Tensor] = {}

    def keep(name: str):
        def hook(module, inputs, output) -> None:
            seen[name] = output

        return hook

    first = model.h[0]
    modules = {
        "tok_emb": model.wte, "pos_emb": model.wpe, "ln1": first.ln_1, "qkv": first.attn.c_attn,
        "yProj": first.attn.c_proj, "ln2": first.ln_2, "fc": first.mlp.c_fc, "mlp": first.mlp.c_proj,
        "block0": first, "block1": model.h[1], "block2": model.h[2], "ln_f": model.ln_f, "lm_head": model.lm_head,
    }  # fmt: skip
    handles = [module.register_forward_hook(keep(name)) for name, module in modules.items()]

    def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        out = full_attention(layer, query, key, value)  # (tokens, heads, head_dim)
        if layer == 0:
            q, k, v = (part.transpose(0, 1) for part in (query, key, value))  # (heads, tokens, head_dim)
            scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5  # (heads, tokens, tokens)
            future = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)  # (tokens, tokens)
            scores = scores.masked_fill(future, float("-inf"))
            seen.update(q=q, k=k, v=v, att=scores, attSm=scores.softmax(-1), y=out.flatten(1))
        return out

    logits = model.logits(model(token_ids, torch.arange(len(token_ids)), attend))  # (tokens, vocab)
    for handle in handles:
        handle.remove()
    seen["x"] = seen["tok_emb"] + seen["pos_emb"]
    seen["attnResid"] = seen["x"] + seen["yProj"]
    seen["gelu"] = first.mlp.activation(seen["fc"])
    seen["mlpResid"] = seen["attnResid"] + seen["mlp"]
    seen["probs"] = logits.softmax(-1)
    return seen


def test_every_intermediate() -> None:
    _, model = load_model(FOLDER)
    golden = np.load(FOLDER / "partials.npz")
    for row, ids in enumerate(golden["idx"].astype(np.int64)):
        seen = intermediates(model, torch.from_numpy(ids))
        assert set(seen) == set(golden.files) - {"idx"}
        for name, got in seen.items():
            expected = golden[name]
            expected = expected[0] if name == "pos_emb" else expected[row]
            if name == "att":  # which fill stands for "masked" is a matter of taste
                expected = np.where(np.isneginf(expected) | (expected < -1e8), -np.inf, expected)
            np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-5, err_msg=f"{name}, input {row}")


def test_the_plain_loop_sorts() -> None:
    _, model = load_model(FOLDER)
    greedy = SamplingParams(temperature=0, max_tokens=6)
    for prompt in list(itertools.product(range(3), repeat=6))[::20]:
        assert generate_plain(model, prompt, greedy).token_ids == sorted(prompt)
