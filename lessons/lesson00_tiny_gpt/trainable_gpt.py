"""A GPT-2 that can be trained: the modules, their names and their shapes are those of Hugging Face's GPT-2.

Because the names agree, `state_dict()` is, key for key, what the model's file holds, and any GPT-2 loader reads it.

It deliberately does not know blocks or requests. The only memory it has is a list of tensors that grow by
concatenation, enough for the judge to write answers. It is independent of `minipaged.model`, which serves the same
weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# For each layer the keys and values so far, each (batch, heads, keys, head_dim). The first pass fills an empty list.
Past = list[tuple[Tensor, Tensor]]


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
    """Causal multi-head self-attention."""

    def __init__(self, shape: GPTShape, residual_std: float, number: int) -> None:
        super().__init__()
        self.number = number
        self.n_head = shape.n_head
        self.c_attn = Conv1D(shape.n_embd, 3 * shape.n_embd, std=0.02)
        self.c_proj = Conv1D(shape.n_embd, shape.n_embd, std=residual_std)

    def forward(self, x: Tensor, past: Past | None, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        qkv = self.c_attn(x).view(batch, length, 3, self.n_head, width // self.n_head)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, length, head_dim)
        if past is not None:
            if len(past) > self.number:
                key = torch.cat([past[self.number][0], key], dim=2)  # (batch, heads, keys, head_dim)
                value = torch.cat([past[self.number][1], value], dim=2)
                past[self.number] = (key, value)
            else:
                past.append((key, value))
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        # out: (batch, heads, length, head_dim)
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

    def __init__(self, shape: GPTShape, residual_std: float, number: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(shape.n_embd, eps=1e-5)
        self.attn = Attention(shape, residual_std, number)
        self.ln_2 = nn.LayerNorm(shape.n_embd, eps=1e-5)
        self.mlp = MLP(shape, residual_std)

    def forward(self, x: Tensor, past: Past | None, mask: Tensor | None) -> Tensor:
        x = x + self.attn(self.ln_1(x), past, mask)
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
        self.h = nn.ModuleList(Layer(shape, residual_std, number) for number in range(shape.n_layer))
        self.ln_f = nn.LayerNorm(shape.n_embd, eps=1e-5)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)

    def forward(
        self, token_ids: Tensor, positions: Tensor, past: Past | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Returns the logits of every row.

        Args:
            token_ids: (batch, length) int64.
            positions: (batch, length) int64; they need not start at 0.
            past: Keys and values of earlier passes, lengthened in place; None keeps nothing.
            mask: (batch, 1, length, keys) bool, true where a row may look; None is causal, and is wrong with a past.

        Returns:
            (batch, length, vocab_size).
        """
        x = self.wte(token_ids) + self.wpe(positions)  # (batch, length, width)
        for layer in self.h:
            x = layer(x, past, mask)
        return F.linear(self.ln_f(x), self.wte.weight)  # (batch, length, vocab_size)

    def num_parameters(self) -> int:
        """The number of trained numbers; the tied head counts once."""
        return sum(parameter.numel() for parameter in self.parameters())
