"""PackedLinear: a linear layer whose weight oneDNN keeps in the order in which its kernels read it.

Faster than `F.linear`, and a row's result is the same to the bit in a batch of any size, which `F.linear`'s is not. The
MLP's activation goes along: computed by itself, its last few numbers take another path than those that fill a vector
register, so a row's bits would depend on how many rows there are. One row, or few, go to a kernel of our own that reads
the same packed weight faster and gives the same bits (`cpu_linear.py`), where that could be verified. Where oneDNN or
its packed form is missing, the plain layers stay: right, but neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from minipaged.model.gpt import GPT, MLP
from minipaged.model.huge_pages import gather

if TYPE_CHECKING:
    from minipaged_kernels.cpu_linear import PackedWeight

# The names of a `ModelConfig` -> oneDNN's name and kind.
_ACTIVATIONS = {"gelu_new": ("gelu", "tanh"), "gelu": ("gelu", "none"), "relu": ("relu", "")}
DTYPES = (torch.float32, torch.bfloat16)
FEWEST_ROWS = 6  # oneDNN reads a float32 weight faster for six rows than for two, by a third where it was measured


def available(dtype: torch.dtype) -> bool:
    """Whether this torch, on this machine, packs weights of this dtype."""
    if dtype not in DTYPES or not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    return hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedLinear(nn.Module):
    """Takes the place of an `nn.Linear` on a CPU, for inference.

    Args:
        linear: its weight is (out, in), of a dtype in `DTYPES`. The packed copy is made here; the weight is not kept.
        activation: what is applied to the result, by the name of a `ModelConfig`; None for nothing.
        own_kernel: multiply few rows with `cpu_linear.py`, where it gives oneDNN's bits. Needs Numba.
    """

    def __init__(self, linear: nn.Linear, activation: str | None = None, *, own_kernel: bool = False) -> None:
        super().__init__()
        self._activation, self._kind = _ACTIVATIONS[activation] if activation else ("none", "")
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)
        if self._weight.is_mkldnn and hasattr(torch.ops.mkldnn, "data_ptr"):
            gather(torch.ops.mkldnn.data_ptr(self._weight), torch.ops.mkldnn._nbytes(self._weight))
        self._bias = None if linear.bias is None else linear.bias.detach()
        self._own: PackedWeight | None = None
        if own_kernel and activation is None:  # the bits of oneDNN's activation are met by oneDNN alone
            from minipaged_kernels.cpu_linear import PackedWeight

            self._own = PackedWeight.read(self._weight, linear.weight.detach(), self._bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, in) to (rows, out)."""
        rows = x.shape[0]
        if self._own is not None and rows <= self._own.max_rows:
            return self._own.multiply(x)  # (rows, out)
        # One row alone takes oneDNN's vector-times-matrix path, which may add in another order; and few rows read the
        # weight more slowly than six do. So a row that is alone, or one of a few, is given company.
        if rows == 1:
            x = x.expand(FEWEST_ROWS, -1)
        elif rows < FEWEST_ROWS:
            x = torch.cat([x, x[:1].expand(FEWEST_ROWS - rows, -1)])
        out = torch.ops.mkldnn._linear_pointwise(
            x.contiguous(), self._weight, self._bias, self._activation, [], self._kind
        )
        return out[:rows]  # (rows, out)


def pack_linears(model: GPT, *, own_kernel: bool = False) -> bool:
    """Replace every `nn.Linear` of the model, in place.

    Args:
        model: its weights are not kept but in packed form.
        own_kernel: see `PackedLinear`.

    Returns:
        False, and nothing is changed, where packed layers are not available or the weights are not on the CPU.
    """
    if model.device.type != "cpu" or not available(model.dtype):
        return False
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear):
                bends = isinstance(parent, MLP) and child is parent.c_fc
                activation = model.config.activation if bends else None
                setattr(parent, name, PackedLinear(child, activation, own_kernel=own_kernel))
        if isinstance(parent, MLP):
            parent.activation = nn.Identity()
    return True
