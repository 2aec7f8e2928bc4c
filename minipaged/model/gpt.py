"""GPT: GPT-2's architecture, inference only, to be read from top to bottom.

Tokens come flat: those of all sequences of a step in one row, without a batch dimension or padding. Every layer but
attention treats each token alone, so the model need not know where one sequence ends and the next begins. Only
attention looks at other tokens, and it is handed in: `attend(layer, query, key, value) -> out`. So this file does not
know of KV caches, blocks or steps.

Modules and parameters bear the names of Hugging Face's GPT-2. Weights are torch Linear's, (out, in): the loader turns
Hugging Face's Conv1D weights over.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from minipaged.config import ModelConfig

# (layer, query (tokens, num_heads, head_dim), key and value (tokens, num_kv_heads, head_dim))
#   -> out (tokens, num_heads, head_dim)
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
}


class Attention(nn.Module):
    """Query, key and value of each token; the heads' answers back into one vector. What lies between is `attend`'s."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        # The rows of c_attn's output: first all query heads, then the key heads, then the value heads.
        self.heads = [config.num_heads, config.num_kv_heads, config.num_kv_heads]
        self.c_attn = nn.Linear(config.hidden_size, sum(self.heads) * config.head_dim)
        self.c_proj = nn.Linear(config.num_heads * config.head_dim, config.hidden_size)

    def forward(self, x: torch.Tensor, attend: Attend) -> torch.Tensor:
        qkv = self.c_attn(x)  # (tokens, (num_heads + 2 * num_kv_heads) * head_dim)
        qkv = qkv.view(len(x), -1, self.head_dim)  # (tokens, num_heads + 2 * num_kv_heads, head_dim)
        query, key, value = qkv.split(self.heads, dim=1)  # each (tokens, num_heads or num_kv_heads, head_dim)
        out = attend(self.layer, query, key, value)  # (tokens, num_heads, head_dim)
        return self.c_proj(out.flatten(1))  # (tokens, hidden)


class MLP(nn.Module):
    """Two linear maps with a bend between them, each token for itself."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.hidden_size, config.intermediate_size)
        self.c_proj = nn.Linear(config.intermediate_size, config.hidden_size)
        self.activation = _ACTIVATIONS[config.activation]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.activation(self.c_fc(x))  # (tokens, intermediate)
        return self.c_proj(x)  # (tokens, hidden)


class Block(nn.Module):
    """One layer: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self.attn = Attention(config, layer)
        self.ln_2 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, x: torch.Tensor, attend: Attend) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x), attend)  # (tokens, hidden)
        return x + self.mlp(self.ln_2(x))  # (tokens, hidden)


class GPT(nn.Module):
    """The whole network: embeddings, layers, final norm, and the head that makes logits of a row.

    A fresh one has torch's default random weights; `minipaged.model.loader.load_model` makes a trained one.

    Args:
        config: the network's shape.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        self.wpe = nn.Embedding(config.max_positions, config.hidden_size)
        self.h = nn.ModuleList(Block(config, layer) for layer in range(config.num_layers))
        self.ln_f = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.wte.weight
        self.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.wte.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype, which is also that of queries, keys and values."""
        return self.wte.weight.dtype

    def forward(self, token_ids: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """The hidden state of each token, after the final norm.

        Args:
            token_ids: (tokens) integers in 0 … vocab_size - 1, those of all sequences one after the other.
            positions: (tokens) integers, each token's place in its own sequence, in 0 … max_positions - 1.
            attend: attention across tokens, called once per layer, in order.

        Returns:
            (tokens, hidden), in the weights' dtype.
        """
        x = self.wte(token_ids) + self.wpe(positions)  # (tokens, hidden)
        for block in self.h:
            x = block(x, attend)  # (tokens, hidden)
        return self.ln_f(x)  # (tokens, hidden)

    def logits(self, hidden_rows: torch.Tensor) -> torch.Tensor:
        """The score of every token of the vocabulary as the next one.

        Args:
            hidden_rows: (rows, hidden): the rows of `forward`'s result that are asked for. The head is the widest
                layer, so rows that nobody draws from are best left out.

        Returns:
            (rows, vocab) float32.
        """
        return self.lm_head(hidden_rows).float()  # (rows, vocab)


def full_attention(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """An `attend` without a cache: the tokens are one whole sequence from position 0; each sees those up to itself.

    Scores, softmax and sum are in float32 (float64 for a float64 model), as in the reference kernel.

    Args:
        layer: not looked at: there is no cache.
        query: (tokens, num_heads, head_dim).
        key: (tokens, num_kv_heads, head_dim).
        value: (tokens, num_kv_heads, head_dim).

    Returns:
        (tokens, num_heads, head_dim), in the query's dtype.
    """
    group = query.shape[1] // key.shape[1]  # query heads that share a KV head
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    q = query.to(wide)  # (tokens, num_heads, head_dim)
    k = key.to(wide).repeat_interleave(group, dim=1)  # (tokens, num_heads, head_dim)
    v = value.to(wide).repeat_interleave(group, dim=1)  # (tokens, num_heads, head_dim)

    scores = torch.einsum("qhd,khd->hqk", q, k) * query.shape[-1] ** -0.5  # (num_heads, tokens, tokens)
    # (tokens, tokens), True above the diagonal: what a row must not see
    future = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(1)
    weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)  # (num_heads, tokens, tokens)
    return torch.einsum("hqk,khd->qhd", weights, v).to(query.dtype)  # (tokens, num_heads, head_dim)
