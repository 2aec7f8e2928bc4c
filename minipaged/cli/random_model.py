"""A tiny GPT-2 folder with random weights and one token per byte: it answers nonsense, the same nonsense every time.

For the doctor where no trained model is at hand, and for tests, which want a model that nobody retrains.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

END_OF_TEXT = "<|endoftext|>"  # its id is 256, behind the bytes


def write_random_model(folder: Path, seed: int = 0, **shape: Any) -> Path:
    """Writes config.json, model.safetensors and tokenizer.json.

    Args:
        folder: made if need be.
        seed: of the weights.
        shape: keys of `config.json` that replace the default ones.

    Returns:
        The folder.
    """
    import torch
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    from minipaged.config import ModelConfig
    from minipaged.model.gpt import GPT

    config = {
        "model_type": "gpt2",
        "vocab_size": 257,
        "n_positions": 512,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 2,
        "eos_token_id": 256,
        "tie_word_embeddings": False,  # a tied random head only repeats the last token
    } | shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        weights = GPT(ModelConfig.from_hugging_face(config)).state_dict()
    for name, weight in weights.items():
        if name.endswith(("c_attn.weight", "c_fc.weight", "c_proj.weight")):
            weights[name] = weight.t().contiguous()  # Hugging Face's Conv1D keeps (in, out)

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True)])

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    save_file(weights, str(folder / "model.safetensors"))
    return folder
