"""A random GPT-2 checkpoint as a Hugging Face folder, for benchmarks: the sizes count, not the words.

Knows the format and no engine; has no tokenizer, so prompts are token ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Size:
    """The shape of a GPT-2 with four times the width between its two MLP layers."""

    num_layers: int
    num_heads: int
    width: int
    vocab_size: int
    context: int = 1024

    @property
    def matrix_parameters(self) -> int:
        """Weights that every token is multiplied with, the head not included: 12 width² a layer."""
        return 12 * self.num_layers * self.width**2

    @property
    def head_parameters(self) -> int:
        """Weights of the head, which is multiplied with those rows alone from which a token is drawn."""
        return self.vocab_size * self.width

    @property
    def parameters(self) -> int:
        """All of them, biases and norms too; the head is tied."""
        per_layer = 12 * self.width**2 + 13 * self.width
        return self.num_layers * per_layer + (self.vocab_size + self.context) * self.width + 2 * self.width


SIZES = {
    "12.6M": Size(num_layers=6, num_heads=6, width=384, vocab_size=4096),
    "124M": Size(num_layers=12, num_heads=12, width=768, vocab_size=50257),
}


def write_checkpoint(folder: Path, size: Size, seed: int = 0) -> Path:
    """Write config.json and model.safetensors in float32, with weights spread as GPT-2's are at the start."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": size.num_layers,
        "n_head": size.num_heads, "n_embd": size.width, "vocab_size": size.vocab_size, "n_positions": size.context,
        "n_ctx": size.context, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.empty(shape).normal_(0.0, 0.02, generator=generator)

    width = size.width
    weights = {"wte.weight": normal(size.vocab_size, width), "wpe.weight": normal(size.context, width)}
    for layer in range(size.num_layers):
        for name, rows, columns in (  # Conv1D keeps (in, out)
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            weights[f"h.{layer}.{name}.weight"] = normal(rows, columns)
            weights[f"h.{layer}.{name}.bias"] = torch.zeros(columns)
        for name in ("ln_1", "ln_2"):
            weights[f"h.{layer}.{name}.weight"], weights[f"h.{layer}.{name}.bias"] = (
                torch.ones(width),
                torch.zeros(width),
            )
    weights["ln_f.weight"], weights["ln_f.bias"] = torch.ones(width), torch.zeros(width)
    save_file({f"transformer.{name}": weight for name, weight in weights.items()}, folder / "model.safetensors")
    return folder
