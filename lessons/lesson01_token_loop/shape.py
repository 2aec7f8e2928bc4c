"""How many weights a GPT multiplies with, from its shape alone. Given; what they cost is the learner's to reckon.

A layer has four matrices. Biases, norms and the rows of the embeddings are left out: they are few, and the lesson
shows how few.
"""

from __future__ import annotations

from minipaged.config import ModelConfig

#: GPT-2's smallest shape, of 124 million parameters. Lessons make it with random weights: here sizes count, not words.
GPT2_124M = ModelConfig(
    vocab_size=50257, max_positions=1024, num_layers=12, num_heads=12, num_kv_heads=12, head_dim=64, hidden_size=768,
    intermediate_size=3072,
)  # fmt: skip


def layer_weights(config: ModelConfig) -> int:
    """Weights in the four matrices of one layer; each row (token) is multiplied with every one of them."""
    query, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    attention = config.hidden_size * (query + 2 * kv) + query * config.hidden_size  # c_attn, c_proj
    mlp = 2 * config.hidden_size * config.intermediate_size  # c_fc, c_proj
    return attention + mlp


def head_weights(config: ModelConfig) -> int:
    """Weights of the head, which turns a row's hidden state into its logits; only rows that want logits meet them."""
    return config.hidden_size * config.vocab_size
