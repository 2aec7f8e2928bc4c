"""A GPT-2 that can be trained: the modules, their names and their shapes are those of Hugging Face's GPT-2.

Because the names agree, `state_dict()` is, key for key, what the model's file holds, and any GPT-2 loader reads it.

It deliberately does not know blocks, caches or requests: each forward pass computes whole rows from position to
position and keeps nothing. That makes it independent of `minipaged.model`, which serves the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (the name the field uses)


@dataclass(frozen=True, slots=True)
class GPTShape:
    """The numbers that determine a GPT-2's parameters."""

    vocab_size: int = 2048
    n_positions: int = 1024
    n_embd: int = 128
    n_layer: int = 4
    n_head: int = 4

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"GPTShape: n_embd {self.n_embd} is not a multiple of n_head {self.n_head}")


class Conv1D(nn.Module):
    """A linear layer whose weight is stored as (in, out), as GPT-2's checkpoints have it."""

    def __init__(self, num_in: int, num_out: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_in, num_out).normal_(std=std))  # (in, out)
        self.bias = nn.Parameter(torch.zeros(num_out))  # (out,)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.t(), self.bias)  # (..., out)


class Attention(nn.Module):
    """Causal multi-head self-attention over whole rows."""

    def __init__(self, shape: GPTShape, residual_std: float) -> None:
        super().__init__()
        self.n_head = shape.n_head
        self.c_attn = Conv1D(shape.n_embd, 3 * shape.n_embd, std=0.02)
        self.c_proj = Conv1D(shape.n_embd, shape.n_embd, std=residual_std)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.c_attn(x).view(batch, length, 3, self.n_head, width // self.n_head)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, length, head_dim)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)  # (batch, heads, length, head_dim)
        return self.c_proj(out.transpose(1, 2).reshape(batch, length, width))  # (batch, length, width)


class MLP(nn.Module):
    """Two linear layers with GPT-2's `gelu_new` (the tanh approximation) between them."""

    def __init__(self, shape: GPTShape, residual_std: float) -> None:
        super().__init__()
        self.c_fc = Conv1D(shape.n_embd, 4 * shape.n_embd, std=0.02)
        self.c_proj = Conv1D(4 * shape.n_embd, shape.n_embd, std=residual_std)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))  # (batch, length, width)


class Layer(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, shape: GPTShape, residual_std: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(shape.n_embd, eps=1e-5)
        self.attn = Attention(shape, residual_std)
        self.ln_2 = nn.LayerNorm(shape.n_embd, eps=1e-5)
        self.mlp = MLP(shape, residual_std)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # (batch, length, width)


class TrainableGPT(nn.Module):
    """GPT-2 with a tied head, initialised as GPT-2 was from torch's global generator."""

    def __init__(self, shape: GPTShape) -> None:
        super().__init__()
        # GPT-2 shrinks the layers that write into the residual stream, so that its variance does not grow with depth.
        residual_std = 0.02 / (2 * shape.n_layer) ** 0.5
        self.shape = shape
        self.wte = nn.Embedding(shape.vocab_size, shape.n_embd)
        self.wpe = nn.Embedding(shape.n_positions, shape.n_embd)
        self.h = nn.ModuleList(Layer(shape, residual_std) for _ in range(shape.n_layer))
        self.ln_f = nn.LayerNorm(shape.n_embd, eps=1e-5)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)

    def forward(self, token_ids: Tensor, positions: Tensor) -> Tensor:
        """Returns the logits of every row.

        Args:
            token_ids: (batch, length) int64.
            positions: (batch, length) int64; they need not start at 0.

        Returns:
            (batch, length, vocab_size).
        """
        x = self.wte(token_ids) + self.wpe(positions)  # (batch, length, width)
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)  # (batch, length, vocab_size)

    def num_parameters(self) -> int:
        """The number of trained numbers; the tied head counts once."""
        return sum(parameter.numel() for parameter in self.parameters())
