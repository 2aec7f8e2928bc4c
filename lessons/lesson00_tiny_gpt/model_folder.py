"""A model as a Hugging Face folder: `config.json`, `model.safetensors` in float16, `tokenizer.json`, and nothing else.

It knows the file formats and neither how the weights came about nor how they are used.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from lessons.lesson00_tiny_gpt.tokenizer_training import END_OF_TEXT
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape, TrainableGPT

FILES = ("config.json", "model.safetensors", "tokenizer.json")


def save_model_folder(model: TrainableGPT, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes the three files, making the folder if need be."""
    shape = model.shape
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": shape.vocab_size,
        "n_positions": shape.n_positions,
        "n_embd": shape.n_embd,
        "n_layer": shape.n_layer,
        "n_head": shape.n_head,
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": True,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "torch_dtype": "float16",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.to_str() + "\n", encoding="utf-8")
    weights = {name: tensor.to(torch.float16).contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors writes for the owner only


def load_model_folder(folder: Path) -> tuple[TrainableGPT, Tokenizer]:
    """Reads a folder that `save_model_folder` wrote; the weights come back as float32.

    Raises:
        ValueError: If one of the three files is missing.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise ValueError(f"load_model_folder: {folder} has no {name}; expected the files {', '.join(FILES)}")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    shape = GPTShape(*(config[key] for key in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")))
    model = TrainableGPT(shape)
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()})
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))
