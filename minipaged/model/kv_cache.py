"""KVCache: the tensor of device blocks, the tensor of host blocks, and the memory operations on both.

Knows neither tokens nor sequences nor which block is free: `minipaged/memory/` keeps those books, and what it decides
comes here as a log of operations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import torch
from minipaged_kernels import reference

from minipaged.config import ModelConfig
from minipaged.model.huge_pages import zeros
from minipaged.plan import CopyBlock, MemoryOp, Poison, SwapIn, SwapOut


class KVCache:
    """K and V of all token slots, all layers.

    One block is one contiguous piece of memory, so a copy or a swap moves it in one go; a layer is a strided view.
    With `MINIPAGED_DEBUG=1` in the environment every slot starts as NaN, so that a read before the first write shows.

    Args:
        config: gives layers, KV heads and head size.
        num_blocks: device blocks, at least 1.
        block_size: token slots in a block, at least 1.
        dtype: of K and V; the model's.
        device: where the device blocks lie ("cpu" plays the part of an accelerator on a machine without one).
        num_host_blocks: blocks in ordinary memory for what is swapped out; 0 for none.
        copy_blocks: the kernel that copies within one memory: a backend's.

    Raises:
        ValueError: a size that is not a whole number of at least 1 (host blocks: 0).
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        num_host_blocks: int = 0,
        copy_blocks: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None] = reference.copy_blocks,
    ) -> None:
        for name, value, least in (
            ("num_blocks", num_blocks, 1),
            ("block_size", block_size, 1),
            ("num_host_blocks", num_host_blocks, 0),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"KVCache: {name} is {value!r}; it must be a whole number of at least {least}")
        self.config = config
        self.block_size = block_size
        block_shape = (config.num_layers, 2, config.num_kv_heads, block_size, config.head_dim)
        # (num_blocks, num_layers, 2, num_kv_heads, block_size, head_dim)
        shape = (num_blocks, *block_shape)
        on_cpu = torch.device(device).type == "cpu"
        self.blocks = zeros(shape, dtype) if on_cpu else torch.zeros(shape, dtype=dtype, device=device)
        # Pinned where there is an accelerator: only then does a swap run at the bus's speed.
        pinned = num_host_blocks > 0 and self.blocks.is_cuda
        # (num_host_blocks, num_layers, 2, num_kv_heads, block_size, head_dim)
        self.host_blocks = torch.zeros((num_host_blocks, *block_shape), dtype=dtype, pin_memory=pinned)
        self._layers = self.blocks.unbind(1)
        self._copy_blocks = copy_blocks
        self.num_applied = 0
        self.debug = os.environ.get("MINIPAGED_DEBUG") == "1"
        if self.debug:
            self.blocks.fill_(float("nan"))
            self.host_blocks.fill_(float("nan"))

    @staticmethod
    def bytes_per_block(config: ModelConfig, block_size: int, dtype: torch.dtype) -> int:
        """Bytes of one block: `2 * num_layers * num_kv_heads * head_dim * itemsize` for each of its slots.

        Args:
            config: gives layers, KV heads and head size.
            block_size: token slots in a block.
            dtype: of K and V.
        """
        return block_size * config.kv_bytes_per_token(dtype.itemsize)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block; what one copy or swap reads, and what it writes."""
        return self.bytes_per_block(self.config, self.block_size, self.blocks.dtype)

    @property
    def num_blocks(self) -> int:
        """Device blocks."""
        return self.blocks.shape[0]

    @property
    def num_host_blocks(self) -> int:
        """Host blocks."""
        return self.host_blocks.shape[0]

    def layer(self, index: int) -> torch.Tensor:
        """One layer's view: (num_blocks, 2, num_kv_heads, block_size, head_dim), not contiguous; K at index 0, V at 1.

        Raises:
            IndexError: there is no such layer.
        """
        return self._layers[index]

    def apply(self, memory_ops: Iterable[MemoryOp]) -> None:
        """Executes a log of operations in its order, as if each had ended before the next began.

        Neighbours of one kind go together as long as none touches what another has written or read, so what was done
        and not counted may be done again. On an accelerator all of it is queued on one stream: no block is read while
        it is still being written.

        `num_applied` counts those done, from 0 in each call, so that after an error the caller knows how far it got.

        Args:
            memory_ops: a plan's.

        Raises:
            IndexError: an operation names a block that is not there; it and its neighbours of one kind are not done.
        """
        self.num_applied = 0
        for operations in _batches(memory_ops):
            if isinstance(operations[0], Poison):
                self.blocks[[self._device(op.block) for op in operations if isinstance(op, Poison)]] = float("nan")
            else:
                source, destination = self._pools(operations[0])
                self._move(source, destination, [self._pair(op) for op in operations])
            self.num_applied += len(operations)

    def _pools(self, op: MemoryOp) -> tuple[torch.Tensor, torch.Tensor]:
        """Between which of the two tensors an operation copies: from, to."""
        return (
            self.host_blocks if isinstance(op, SwapIn) else self.blocks,
            self.host_blocks if isinstance(op, SwapOut) else self.blocks,
        )

    def _pair(self, op: MemoryOp) -> tuple[int, int]:
        """Source and destination block of an operation that copies."""
        match op:
            case CopyBlock(source, destination):
                return self._device(source), self._device(destination)
            case SwapOut(device, host):
                return self._device(device), self._host(host)
            case SwapIn(host, device):
                return self._host(host), self._device(device)
        raise TypeError(f"KVCache: {op} copies nothing")

    def _move(self, source: torch.Tensor, destination: torch.Tensor, pairs: list[tuple[int, int]]) -> None:
        """Copies whole blocks, pair by pair."""
        if source.device == destination.device:
            self._copy_blocks(source, destination, torch.tensor(pairs))  # the pairs are read on the host
            return
        first = 0  # between two memories, blocks that are neighbours in both go as one piece
        for end in range(1, len(pairs) + 1):
            a, b = pairs[first]
            length = end - first
            if end == len(pairs) or pairs[end] != (a + length, b + length):
                destination[b : b + length].copy_(source[a : a + length], non_blocking=True)
                first = end

    # Both look before anything is indexed: torch would take -1 for the last block.

    def _device(self, block: int) -> int:
        if not 0 <= block < self.num_blocks:
            raise IndexError(f"KVCache: device block {block} is not among the {self.num_blocks} there are")
        return block

    def _host(self, block: int) -> int:
        if not 0 <= block < self.num_host_blocks:
            raise IndexError(f"KVCache: host block {block} is not among the {self.num_host_blocks} there are")
        return block


def _batches(memory_ops: Iterable[MemoryOp]) -> Iterator[list[MemoryOp]]:
    """Cuts a log into runs of one kind whose operations may happen in any order, or a second time after a failure.

    So a run ends before an operation whose destination was read or written in it, or whose source was written in it.
    """
    batch: list[MemoryOp] = []
    read: set[tuple[str, int]] = set()
    written: set[tuple[str, int]] = set()
    for op in memory_ops:
        source, destination = _ends(op)
        if batch and (
            type(op) is not type(batch[0]) or destination in read or destination in written or source in written
        ):
            yield batch
            batch, read, written = [], set(), set()
        batch.append(op)
        written.add(destination)
        if source is not None:
            read.add(source)
    if batch:
        yield batch


def _ends(op: MemoryOp) -> tuple[tuple[str, int] | None, tuple[str, int]]:
    """The block that an operation reads, if any, and the one that it writes, each with its pool."""
    match op:
        case CopyBlock(source, destination):
            return ("device", source), ("device", destination)
        case SwapOut(device, host):
            return ("device", device), ("host", host)
        case SwapIn(host, device):
            return ("host", host), ("device", device)
        case Poison(block):
            return None, ("device", block)
