"""A tiny random GPT-2 as a Hugging Face folder, tokenizer included: what `LLM` loads, in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.tiny_models import tiny_gpt

TEXT = [
    "the cat sat on the mat and the hat",
    "请解释什么是黑洞",
    "hello there, hello world. STOP",
    "请解释什么是量子纠缠",
]


def make_tiny_folder(folder: Path, max_positions: int = 256) -> Path:
    """config.json, model.safetensors and tokenizer.json; byte-level tokens, end-of-text `<|endoftext|>`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))

    vocab_size = tokenizer.get_vocab_size()
    model = tiny_gpt(vocab_size=vocab_size, max_positions=max_positions)
    config = model.config
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2", "vocab_size": vocab_size, "n_positions": max_positions,
                "n_embd": config.hidden_size, "n_layer": config.num_layers, "n_head": config.num_heads,
                "n_inner": config.intermediate_size, "eos_token_id": tokenizer.token_to_id("<|endoftext|>"),
            }
        )
    )  # fmt: skip
    conv1d = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    weights = {
        name: (weight.t() if name.endswith(conv1d) else weight).contiguous()
        for name, weight in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.safetensors")
    return folder
