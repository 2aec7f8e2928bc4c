"""One step, run and counted on the model itself: nothing here uses a formula.

A prefill is a step without earlier tokens. A decode is a step of one token behind some whose K and V are there already;
how one keeps them is lesson 2's business, so here they are random numbers: the work is the same. Counting needs shapes
and no numbers, so it also runs on a model on torch's "meta" device, which has no memory behind its tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from minipaged.config import ModelConfig
from minipaged.model.gpt import GPT, full_attention


class OneStep:
    """A forward pass that can be repeated.

    Args:
        model: the network; on the "meta" device it can be counted, not timed.
        new_tokens: rows that go through the layers.
        context: tokens that there are after the step, the new ones included.

    `new_tokens` must be 1 if `context` is larger: behind earlier tokens it is a decode.
    """

    def __init__(self, model: GPT, new_tokens: int, context: int) -> None:
        if new_tokens not in (1, context):
            raise ValueError(f"OneStep: {new_tokens} new tokens of {context}; a step is all of them, or the last one")
        self.model = model
        self.token_ids = torch.zeros(new_tokens, dtype=torch.long, device=model.device)  # (new)
        self.positions = torch.arange(context - new_tokens, context, device=model.device)  # (new)
        config, earlier = model.config, context - new_tokens
        # (layers, 2, earlier, kv_heads, head_dim)
        shape = (config.num_layers, 2, earlier, config.num_kv_heads, config.head_dim)
        self.earlier = torch.randn(shape, device=model.device).to(model.dtype) if earlier else None
        self.kv_bytes = 0  # K and V written and read by the last run

    def run(self) -> torch.Tensor:
        """The logits of the last row: (1, vocab)."""
        self.kv_bytes = 0
        with torch.inference_mode():
            hidden = self.model(self.token_ids, self.positions, self._attend)  # (new, hidden)
            return self.model.logits(hidden[-1:])  # (1, vocab)

    def _attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        written = key.nbytes + value.nbytes
        if self.earlier is not None:
            key = torch.cat([self.earlier[layer, 0], key])  # (context, kv_heads, head_dim)
            value = torch.cat([self.earlier[layer, 1], value])  # (context, kv_heads, head_dim)
        self.kv_bytes += written + key.nbytes + value.nbytes
        if len(query) == len(key):
            return full_attention(layer, query, key, value)
        # The one new token is the last: no mask, for there is no future.
        group = query.shape[1] // key.shape[1]
        k, v = (x.repeat_interleave(group, dim=1) for x in (key, value))  # (context, num_heads, head_dim)
        scores = torch.einsum("qhd,khd->hqk", query, k) * query.shape[-1] ** -0.5  # (num_heads, 1, context)
        return torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), v)  # (1, num_heads, head_dim)


@dataclass(frozen=True, slots=True)
class Count:
    """What one step did.

    Args:
        flops: of its matrix products, by torch's own counter.
        weight_bytes: of all parameters of the modules that ran; of an embedding the rows that were looked up.
        kv_bytes: of K and V, written and read.
        activation_bytes: of the rows that went into the modules and came out of them.
    """

    flops: int
    weight_bytes: int
    kv_bytes: int
    activation_bytes: int

    @property
    def num_bytes(self) -> int:
        """Weights, and K and V."""
        return self.weight_bytes + self.kv_bytes


def count(step: OneStep) -> Count:
    """Runs a step once and counts, module by module, what really happened."""
    weight_bytes = activation_bytes = 0

    def hook(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal weight_bytes, activation_bytes
        activation_bytes += sum(x.nbytes for x in inputs) + output.nbytes
        if isinstance(module, nn.Embedding):
            weight_bytes += output.nbytes
        else:
            weight_bytes += sum(parameter.nbytes for parameter in module.parameters(recurse=False))

    leaves = [module for module in step.model.modules() if not list(module.children())]
    handles = [module.register_forward_hook(hook) for module in leaves]
    counter = FlopCounterMode(display=False)
    try:
        with counter:
            step.run()
    finally:
        for handle in handles:
            handle.remove()
    return Count(counter.get_total_flops(), weight_bytes, step.kv_bytes, activation_bytes)


def shape_only(config: ModelConfig) -> GPT:
    """A model without numbers, to be counted on; it takes no memory."""
    with torch.device("meta"):
        return GPT(config)


def random_model(config: ModelConfig, device: str = "cpu") -> GPT:
    """A model with random weights, to be timed."""
    model = shape_only(config).to_empty(device=device)
    generator = torch.Generator(device).manual_seed(0)
    for parameter in model.parameters():
        parameter.uniform_(-0.03, 0.03, generator=generator)
    return model
