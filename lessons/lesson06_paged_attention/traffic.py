"""Traffic: counts the bytes of K and V that torch operations move, by looking at each operation as it runs.

It watches a pool. Whatever an operation takes out of it is read; where an operation only moves what it reads (a gather,
a clone), its result is a copy of K and V, and is watched like the pool from then on. So anybody's attention can be
counted as it is, the learner's too.

Deliberately does not know: caches. A copy of one block that is read again at once costs little time, and counts like
any other; `largest_copy_bytes` tells it from a copy of everything. What is computed from K and V (scores, weights) is
not counted, nor what runs outside torch, such as the Numba kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_GATHERS = {"index_select", "index", "gather", "take"}  # read as much as they return, not all that they are given
_MOVES = _GATHERS | {"clone", "copy_", "_to_copy", "cat", "stack", "repeat"}
#: Look at a tensor's shape alone.
_SHAPES = {f"{kind}_like" for kind in ("empty", "zeros", "ones", "full")} | {
    f"new_{kind}" for kind in ("empty", "zeros", "ones", "full", "empty_strided")
}


class Traffic(TorchDispatchMode):
    """Counts while it is entered.

    Args:
        pool: one layer's K and V.

    `pool_read_bytes`, `copy_written_bytes`, `copy_read_bytes`: the three passes.
    `largest_copy_bytes`, `largest_copy_numbers`: of one copy.
    """

    def __init__(self, pool: torch.Tensor) -> None:
        super().__init__()
        self.pool_read_bytes = self.copy_written_bytes = self.copy_read_bytes = self.largest_copy_bytes = 0
        self.largest_copy_numbers = 0
        self._pool = _storage(pool)
        # Kept until the end, so that no other tensor gets a copy's address.
        self._copies: dict[int, torch.UntypedStorage] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        returns = func._schema.returns
        if returns and returns[0].alias_info is not None and not returns[0].alias_info.is_write:
            return result  # a view: another way to look at the same bytes
        name = func.overloadpacket.__name__
        if name in _SHAPES:
            return result
        written: list[torch.Tensor] = []
        read: list[torch.Tensor] = []
        for i, argument in enumerate(func._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            (written if is_written else read).extend(t for t in tree_leaves(value) if isinstance(t, torch.Tensor))
        destinations = written or [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]

        moved = False
        for tensor in read:
            if not self._is_watched(tensor):
                continue
            num_bytes = _num_bytes(destinations[0] if name in _GATHERS else tensor)
            if _storage(tensor) == self._pool:
                self.pool_read_bytes += num_bytes
            else:
                self.copy_read_bytes += num_bytes
            moved = True
        if moved and name in _MOVES:
            for tensor in destinations:
                self._copies[_storage(tensor)] = tensor.untyped_storage()
                self.copy_written_bytes += _num_bytes(tensor)
                self.largest_copy_bytes = max(self.largest_copy_bytes, _num_bytes(tensor))
                numbers = _num_bytes(tensor) // tensor.element_size()
                self.largest_copy_numbers = max(self.largest_copy_numbers, numbers)
        return result

    @property
    def total_bytes(self) -> int:
        """All three passes."""
        return self.pool_read_bytes + self.copy_written_bytes + self.copy_read_bytes

    def _is_watched(self, tensor: torch.Tensor) -> bool:
        return _storage(tensor) == self._pool or _storage(tensor) in self._copies


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _num_bytes(tensor: torch.Tensor) -> int:
    """Bytes that lie under a tensor: one that is expanded looks at the same ones repeatedly."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return torch.Size([size for size, stride in sizes if stride or not size]).numel() * tensor.element_size()
